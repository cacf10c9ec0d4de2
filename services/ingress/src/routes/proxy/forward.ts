import type { CredentialLocation } from '@weir/identity/caller.ts'
import type { Upstream } from '@weir/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Dispatcher } from 'undici'
import type { HttpMetrics } from '../../http/timed-response.ts'
import { clientGoneStatus } from '../../http/timed-response.ts'
import type { Ports } from '../../ports.ts'
import { ClientBody, createUploadWatch, hasBody } from './client-body.ts'
import { createEnding, type EndingPorts, type UpstreamCall } from './end-exchange.ts'
import { Exchange } from './exchange.ts'
import { headersForUpstream } from './proxied-headers.ts'
import type { ProxiedRequest } from './proxied-request.ts'
import { withoutParameter } from './read-target.ts'
import { openTunnel } from './tunnel.ts'
import { createUpstreamPools, upstreamBounds } from './upstream-pools.ts'
import type { Slot } from './upstream-slots.ts'

/** The ports of the proxy beyond deciding. */
export type ForwardPorts = Pick<Ports, 'upstreamBounds'> & Omit<EndingPorts, 'tokens'>

/** By then an upstream has seen that its connection was closed: until it has, a request is in flight there. */
const hangUpMs = 250

/** The way to the upstreams and back. */
export function createForwarder(ports: ForwardPorts, log: Logger, { upstreams, tokens }: HttpMetrics) {
  const bounds = { ...upstreamBounds, ...ports.upstreamBounds }
  const pools = createUpstreamPools(bounds, upstreams)
  const uploads = createUploadWatch(bounds.bodyRateMin, bounds.rateEveryMs)
  const tunnels = new Set<() => void>()
  const { ended, released, settleDrained } = createEnding({ ...ports, tokens }, log)
  let isClosing = false

  const forward = (proxied: ProxiedRequest) => {
    const { request, response, view, protocol, upstream, readBody } = proxied
    const subject = proxied.caller.subject.id
    if (response.destroyed || request.socket.destroyed) {
      proxied.free?.()
      return ended(proxied, { status: clientGoneStatus, bytesIn: 0, bytesOut: 0, error: 'client_gone' })
    }
    const body = readBody ?? (hasBody(request) ? new ClientBody(request) : null)
    let [slot, sent]: [Slot?, UpstreamCall?] = []
    const exchange = new Exchange(proxied, body, {
      ended: (outcome) => {
        if (body instanceof ClientBody) uploads.remove(body)
        slot?.stopWaiting()
        // With the upstream, it is in flight until the upstream's connection is free.
        if (sent === undefined) proxied.free?.()
        ended(proxied, outcome, sent)
      },
      released: (isKnown) => {
        slot?.leave()
        released(proxied)
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
          ended(proxied, { status: 101, ...bytes, error: '' })
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
    settleDrained,
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

const queryFor = (query: string, carriedIn: CredentialLocation | undefined) =>
  carriedIn?.kind === 'query' ? withoutParameter(query, carriedIn.name) : query
