import { encodeOutcomeOpen } from '@weir/contracts/outcome.v1.ts'
import type { Settling } from '@weir/decide/correct/settle.ts'
import type { UsageSettler } from '@weir/decide/correct/usage-settler.ts'
import type { CredentialLocation } from '@weir/identity/caller.ts'
import type { Upstream } from '@weir/policy/policy.ts'
import type { Histogram } from '@weir/runtime/histogram.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Dispatcher } from 'undici'
import { recordedMethod } from '../../http/recorded-method.ts'
import type { HttpMetrics } from '../../http/timed-response.ts'
import { clientGoneStatus, observeBrokenOff } from '../../http/timed-response.ts'
import type { Ports } from '../../ports.ts'
import type { RequestTrace } from '../../trace/request-trace.ts'
import { ClientBody, createUploadWatch, hasBody } from './client-body.ts'
import { Exchange } from './exchange.ts'
import { headersForUpstream } from './proxied-headers.ts'
import type { ProxiedRequest, ProxyOutcome } from './proxied-request.ts'
import { withoutParameter } from './read-target.ts'
import { openTunnel } from './tunnel.ts'
import { createUpstreamPools, upstreamBounds } from './upstream-pools.ts'
import type { Slot } from './upstream-slots.ts'

/** The ports of the proxy beyond deciding. */
export type ForwardPorts = Pick<Ports, 'outcomes' | 'clock' | 'upstreamBounds'> & {
  /** Refunds requests that the upstream failed. */
  readonly settling?: Pick<Settling, 'refund'> | undefined
  /** Settles what metered requests used; without it what they hold stays. */
  readonly usage?: Pick<UsageSettler, 'settle'> | undefined
}

/** By then an upstream has seen that its connection was closed: until it has, a request is in flight there. */
const hangUpMs = 250

/** A request that is with its upstream, since `atMs` by `performance.now()`. */
interface UpstreamCall {
  readonly atMs: number
  readonly duration: Histogram
}

/** The way to the upstreams and back. */
export function createForwarder(ports: ForwardPorts, log: Logger, { upstreams }: Pick<HttpMetrics, 'upstreams'>) {
  const bounds = { ...upstreamBounds, ...ports.upstreamBounds }
  const pools = createUpstreamPools(bounds, upstreams)
  const uploads = createUploadWatch(bounds.bodyRateMin, bounds.rateEveryMs)
  const tunnels = new Set<() => void>()
  /** What settles answers that are read on after their clients have gone: as many as upstreams have places. */
  const drained = new Map<ProxiedRequest, () => void>()
  let isClosing = false

  const end = (proxied: ProxiedRequest, outcome: ProxyOutcome, sent?: UpstreamCall) => {
    const endedAt = observeEnd(proxied, outcome, sent)
    recordOutcome(ports, proxied, outcome, endedAt)
    if (proxied.metered === undefined) return refund(ports, proxied, outcome, log)
    const settle = () => settleUsage(ports, proxied, outcome, { wasSent: sent !== undefined, endedAt }, log)
    if (!proxied.metered.isDrained) return settle()
    drained.set(proxied, settle)
  }

  const forward = (proxied: ProxiedRequest) => {
    const { request, response, view, protocol, upstream, readBody } = proxied
    const subject = proxied.caller.subject.id
    if (response.destroyed || request.socket.destroyed) {
      proxied.free?.()
      return end(proxied, { status: clientGoneStatus, bytesIn: 0, bytesOut: 0, error: 'client_gone' })
    }
    const body = readBody ?? (hasBody(request) ? new ClientBody(request) : null)
    let [slot, sent]: [Slot?, UpstreamCall?] = []
    const exchange = new Exchange(proxied, body, {
      ended: (outcome) => {
        if (body instanceof ClientBody) uploads.remove(body)
        slot?.stopWaiting()
        // With the upstream, it is in flight until the upstream's connection is free.
        if (sent === undefined) proxied.free?.()
        end(proxied, outcome, sent)
      },
      released: (isKnown) => {
        slot?.leave()
        drained.get(proxied)?.()
        drained.delete(proxied)
        if (isKnown) proxied.free?.()
        else if (proxied.free !== undefined) setTimeout(proxied.free, hangUpMs)
      },
      stale: () => pools.dispatchAlone(upstream, dispatchOf(proxied, null), exchange),
      failed: (error) => log.warn({ err: error, upstream: upstream.name }, 'upstream failed'),
      switched: (headers, socket) => {
        response.detachSocket(request.socket)
        const close = openTunnel(proxied, protocol ?? '', { headers, socket }, (bytes) => {
          tunnels.delete(close)
          slot?.leave()
          proxied.free?.()
          end(proxied, { status: 101, ...bytes, error: '' })
        })
        // The request may have waited for a slot that a closed tunnel left.
        if (isClosing) close()
        else tunnels.add(close)
      },
    })
    const enter = () => {
      if (exchange.hasEnded) return
      const { pool, slots, duration } = pools.of(upstream, view.policy)
      slot = slots.enter(subject)
      if (slot === undefined) return exchange.refuseBusy()
      const send = () => {
        if (body instanceof ClientBody) uploads.add(body, () => exchange.refuseSlow())
        sent = { atMs: performance.now(), duration }
        pool.dispatch(dispatchOf(proxied, body), exchange)
      }
      slot.whenConnected(upstream.timeoutMs, send, () => exchange.refuseBusy())
    }
    if (!(body instanceof ClientBody)) return enter()
    // The client is not asked for a body that would be refused.
    if (!pools.of(upstream, view.policy).slots.hasFor(subject)) return exchange.refuseBusy()
    proxied.mayContinue()
    body.whenBegun(enter)
  }

  return {
    forward,
    /** Ends the tunnels, which would never end by themselves, and from now on each that opens. */
    closeTunnels() {
      isClosing = true
      for (const close of tunnels) close()
    },
    close: pools.close,
  }
}

/** The request as the upstream gets it. */
function dispatchOf(proxied: ProxiedRequest, body: ClientBody | Buffer | null): Dispatcher.DispatchOptions {
  const { request, path, target, caller, protocol, upstream } = proxied
  return {
    path: path + queryFor(target.query, caller.carriedIn),
    // Node's parser has accepted the method; undici's type lists those that it knows.
    method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
    headers: headersForUpstream(proxied),
    body,
    headersTimeout: upstream.timeoutMs,
    bodyTimeout: upstream.idleMs ?? upstream.timeoutMs,
    upgrade: protocol ?? null,
    // With the client's host undici would ask for that one's certificate, over a connection of its own.
    ...(upstream.preserveHost ? { servername: serverNameOf(upstream) } : {}),
  }
}

const serverNames = new WeakMap<Upstream, string>()

/** Read once for each version of an upstream. */
function serverNameOf(upstream: Upstream): string {
  const known = serverNames.get(upstream)
  if (known !== undefined) return known
  const name = new URL(upstream.url).hostname.replaceAll(/[[\]]/g, '')
  serverNames.set(upstream, name)
  return name
}

/** Observes the upstream's time, and the answer's where it does not come to its own end. Returns when that was. */
function observeEnd(proxied: ProxiedRequest, outcome: ProxyOutcome, sent: UpstreamCall | undefined): number {
  const { request, response, trace } = proxied
  const { error } = outcome
  const endedAt = performance.now()
  if (trace !== undefined) traceEnd(proxied, trace, outcome, { startedAt: sent?.atMs ?? endedAt, endedAt })
  const isClientGone = error === 'client_gone'
  if (sent !== undefined && !isClientGone) sent.duration.observe((endedAt - sent.atMs) / 1_000)
  const isBrokenOff = response.destroyed || request.socket.destroyed || response.headersSent
  if (error !== '' && isBrokenOff) observeBrokenOff(response, isClientGone ? clientGoneStatus : 502)
  return endedAt
}

/** The span of the upstream's work, which the upstream was given as the parent of its own. */
function traceEnd(
  { upstream }: ProxiedRequest,
  trace: RequestTrace,
  { status, error }: ProxyOutcome,
  times: { readonly startedAt: number; readonly endedAt: number },
): void {
  const attributes = {
    'weir.upstream': upstream.name,
    'http.response.status_code': status,
    'error.type': error || undefined,
  }
  const ids = { name: 'proxy', kind: 'client', spanId: trace.upstreamSpanId } as const
  trace.addChild({ ...ids, ...times, attributes, isError: error !== '' })
  if (error !== '' && error !== 'client_gone') trace.breakOff(502)
  // The answer of a tunnel was detached from its connection, and is not closed with it.
  if (status === 101) trace.end({ 'http.response.status_code': status }, false)
}

/** Records how the request ended. An outcome that the journal rejects is only missed. */
function recordOutcome(
  { outcomes, clock }: ForwardPorts,
  proxied: ProxiedRequest,
  outcome: ProxyOutcome,
  endedAt: number,
): void {
  const { decisionId, request, route, caller, upstream, startedAt } = proxied
  // Without a record of the decision, the outcome could not be looked up.
  if (decisionId === '') return
  const subject = caller.subject.id
  const line = encodeOutcomeOpen({
    id: decisionId,
    tsMs: clock.nowMs(),
    subject,
    route: route.template,
    method: recordedMethod(request.method ?? ''),
    ...outcome,
    durationMs: Math.round((endedAt - startedAt) * 1_000) / 1_000,
    upstream: upstream.name,
  })
  outcomes.append(subject, line)
}

/** Refunds the charge where the route says so. */
function refund({ settling }: ForwardPorts, { charged, route }: ProxiedRequest, { status }: ProxyOutcome, log: Logger) {
  if (charged === undefined || route.refundOn?.includes(status) !== true) return
  settling?.refund(charged).catch((error: unknown) => log.error({ err: error }, 'charge not refunded'))
}

/** Settles what it used, and the cost where the route says so. */
function settleUsage(
  { usage }: ForwardPorts,
  { metered, route, startedAt }: ProxiedRequest,
  outcome: ProxyOutcome,
  { wasSent, endedAt }: { readonly wasSent: boolean; readonly endedAt: number },
  log: Logger,
): void {
  if (metered === undefined) return
  const used = metered.usage(outcome, wasSent, endedAt - startedAt)
  const cost = route.refundOn?.includes(outcome.status) === true ? 0 : undefined
  usage?.settle(metered.charged, { ...used, cost }).catch((error: unknown) => log.error({ err: error }, 'not settled'))
}

const queryFor = (query: string, carriedIn: CredentialLocation | undefined) =>
  carriedIn?.kind === 'query' ? withoutParameter(query, carriedIn.name) : query
