import { encodeOutcomeOpen } from '@weir/contracts/outcome.v1.ts'
import type { CredentialPlace } from '@weir/identity/caller.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Dispatcher } from 'undici'
import type { Settling } from '../../decide/correct/settle.ts'
import { recordedMethod } from '../../http/recorded-method.ts'
import type { Ports } from '../../ports.ts'
import { ClientBody, createUploadWatch, hasBody } from './client-body.ts'
import { Exchange } from './exchange.ts'
import { headersForUpstream } from './proxied-headers.ts'
import type { ProxiedRequest, ProxyOutcome } from './proxied-request.ts'
import { withoutParameter } from './read-target.ts'
import { openTunnel } from './tunnel.ts'
import type { Place } from './upstream-places.ts'
import { createUpstreamPools, upstreamBounds } from './upstream-pools.ts'

/** The ports of the proxy beyond deciding. */
export type ForwardPorts = Pick<Ports, 'outcomes' | 'clock' | 'upstreamBounds'> & {
  /** Refunds requests that the upstream failed. */
  readonly settling?: Pick<Settling, 'refund'> | undefined
}

/** The way to the upstreams and back. */
export function createForwarder(ports: ForwardPorts, log: Logger) {
  const bounds = { ...upstreamBounds, ...ports.upstreamBounds }
  const pools = createUpstreamPools(bounds)
  const uploads = createUploadWatch(bounds.bodyRateMin, bounds.rateEveryMs)
  const tunnels = new Set<() => void>()
  let isClosing = false

  const end = (proxied: ProxiedRequest, outcome: ProxyOutcome) => {
    recordOutcome(ports, proxied, outcome)
    refund(ports, proxied, outcome, log)
  }

  const forward = (proxied: ProxiedRequest) => {
    const { request, response, view, protocol, upstream, readBody } = proxied
    const subject = proxied.caller.subject.id
    if (response.destroyed || request.socket.destroyed) {
      return end(proxied, { status: 499, bytesIn: 0, bytesOut: 0, error: 'client_gone' })
    }
    const body = readBody ?? (hasBody(request) ? new ClientBody(request) : null)
    let place: Place | undefined
    const exchange = new Exchange(proxied, body, {
      ended: (outcome) => {
        if (body instanceof ClientBody) uploads.remove(body)
        place?.stopWaiting()
        end(proxied, outcome)
      },
      released: () => place?.leave(),
      failed: (error) => log.warn({ err: error, upstream: upstream.name }, 'upstream failed'),
      switched: (headers, socket) => {
        response.detachSocket(request.socket)
        const close = openTunnel(proxied, protocol ?? '', { headers, socket }, (bytes) => {
          tunnels.delete(close)
          place?.leave()
          end(proxied, { status: 101, ...bytes, error: '' })
        })
        // The request may have waited for a place that a closed tunnel left.
        if (isClosing) close()
        else tunnels.add(close)
      },
    })
    const enter = () => {
      if (exchange.hasEnded) return
      const { pool, places } = pools.of(upstream, view.policy)
      place = places.enter(subject)
      if (place === undefined) return exchange.refuseBusy()
      const send = () => {
        if (body instanceof ClientBody) uploads.add(body, () => exchange.refuseSlow())
        pool.dispatch(dispatchOf(proxied, body), exchange)
      }
      place.whenConnected(upstream.timeoutMs, send, () => exchange.refuseBusy())
    }
    if (!(body instanceof ClientBody)) return enter()
    // The client is not asked for a body that would be refused.
    if (!pools.of(upstream, view.policy).places.hasFor(subject)) return exchange.refuseBusy()
    proxied.mayContinue()
    body.whenBegun(enter)
  }

  return {
    forward,
    /** Ends the tunnels, which would never end by themselves, and from now on each that opens. */
    closeTunnels: () => {
      isClosing = true
      for (const close of tunnels) close()
    },
    /** Breaks off what is still with an upstream. */
    close: () => pools.close(),
  }
}

/** The request as the upstream gets it. */
function dispatchOf(proxied: ProxiedRequest, body: ClientBody | Buffer | null): Dispatcher.DispatchOptions {
  const { request, target, caller, protocol, upstream } = proxied
  return {
    path: target.path + queryFor(target.query, caller.carriedIn),
    // Node's parser has accepted the method; undici's type lists those that it knows.
    method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
    headers: headersForUpstream(proxied),
    body,
    headersTimeout: upstream.timeoutMs,
    bodyTimeout: upstream.timeoutMs,
    upgrade: protocol ?? null,
  }
}

/** Records how the request ended. An outcome that the journal rejects is only missed. */
function recordOutcome({ outcomes, clock }: ForwardPorts, proxied: ProxiedRequest, outcome: ProxyOutcome): void {
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
    durationMs: Math.round((performance.now() - startedAt) * 1_000) / 1_000,
    upstream: upstream.name,
  })
  outcomes.append(subject, line)
}

/** Refunds the charge where the route says so. */
function refund({ settling }: ForwardPorts, { charged, route }: ProxiedRequest, { status }: ProxyOutcome, log: Logger) {
  if (charged === undefined || route.refundOn?.includes(status) !== true) return
  settling?.refund(charged).catch((error: unknown) => log.error({ err: error }, 'a charge was not given back'))
}

const queryFor = (query: string, carriedIn: CredentialPlace | undefined) =>
  carriedIn?.kind === 'query' ? withoutParameter(query, carriedIn.name) : query
