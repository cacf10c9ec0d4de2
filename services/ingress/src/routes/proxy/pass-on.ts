import type { Route, Upstream } from '@weir/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Dispatcher } from 'undici'
import type { Settling } from '../../decide/correct/settle.ts'
import type { ChargedDecision } from '../../decide/types.ts'
import type { Caller, CredentialPlace } from '../../http/identity/caller.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { Ports } from '../../ports.ts'
import type { Arrival } from './arrival.ts'
import { ClientBody, hasBody } from './client-body.ts'
import { Exchange } from './exchange.ts'
import { createOutcomeRecorder, type Ending, type Passage } from './passage.ts'
import { noUpstream, writeProblem } from './problems.ts'
import { withoutParameter } from './read-target.ts'
import { headersForUpstream } from './request-headers.ts'
import { openTunnel } from './tunnel.ts'
import { createUploadWatch } from './upload-rate.ts'
import type { Place } from './upstream-places.ts'
import { createUpstreamPools, upstreamBounds } from './upstream-pools.ts'

/** A request that was allowed. */
export interface Admitted extends Arrival {
  readonly view: PolicyView
  readonly route: Route
  readonly caller: Extract<Caller, { kind: 'known' }>
  readonly decisionId: string
  /** The limit that it passed without room; empty for none. */
  readonly degradedBy: string
  /** Names that the client's `Connection` gives. */
  readonly hopByHop: ReadonlySet<string> | undefined
  /** On a route with `refundOn`. */
  readonly charged: ChargedDecision | undefined
  /** What we say on the answer, names and values in turns. */
  readonly ownHeaders: readonly string[]
  /** The body, where it had to be read for the cost. */
  readonly readBody: Buffer | undefined
}

/** The way to the upstreams and back. */
export interface PassOn {
  passOn(admitted: Admitted): void
  /** Ends the tunnels, which would never end by themselves, and from now on each that opens. */
  closeTunnels(): void
  /** Breaks off what is still with an upstream. */
  close(): Promise<void>
}

type PassOnPorts = Pick<Ports, 'outcomes' | 'clock' | 'upstreamBounds'> & {
  readonly settling?: Pick<Settling, 'giveBack'> | undefined
}

export function createPassOn(ports: PassOnPorts, log: Logger): PassOn {
  const bounds = { ...upstreamBounds, ...ports.upstreamBounds }
  const pools = createUpstreamPools(bounds)
  const uploads = createUploadWatch(bounds.bodyRateMin, bounds.rateEveryMs)
  const recordOutcome = createEnding(ports, log)
  const tunnels = new Set<() => void>()
  let isClosing = false

  const passOn = (admitted: Admitted) => {
    const { request, response, view, protocol, readBody, ownHeaders } = admitted
    const upstream = view.resolveUpstream(request.headers.host ?? '', admitted.route)
    if (upstream === undefined) return writeProblem(response, noUpstream, ownHeaders)
    const passage = passageOf(admitted, upstream)
    if (response.destroyed || request.socket.destroyed) {
      return recordOutcome(passage, { status: 499, bytesIn: 0, bytesOut: 0, error: 'client_gone' })
    }
    const body = readBody ?? (hasBody(request) ? new ClientBody(request) : null)
    let place: Place | undefined
    const exchange = new Exchange(passage, body, {
      ended: (ending) => {
        if (body instanceof ClientBody) uploads.remove(body)
        place?.stopWaiting()
        recordOutcome(passage, ending)
      },
      released: () => place?.leave(),
      failed: (error) => log.warn({ err: error, upstream: upstream.name }, 'upstream failed'),
      switched: (headers, socket) => {
        response.detachSocket(request.socket)
        const close = openTunnel(passage, protocol ?? '', { headers, socket }, (bytes) => {
          tunnels.delete(close)
          place?.leave()
          recordOutcome(passage, { status: 101, ...bytes, error: '' })
        })
        // Of a request that waited for a place which a closed tunnel left.
        if (isClosing) close()
        else tunnels.add(close)
      },
    })
    const enter = () => {
      if (exchange.hasEnded) return
      const { pool, places } = pools.of(upstream, view.policy)
      place = places.enter(passage.subjectId)
      if (place === undefined) return exchange.refuseBusy()
      const send = () => {
        if (body instanceof ClientBody) uploads.add(body, () => exchange.refuseSlow())
        pool.dispatch(dispatchOf(admitted, upstream, body), exchange)
      }
      place.whenConnected(upstream.timeoutMs, send, () => exchange.refuseBusy())
    }
    if (!(body instanceof ClientBody)) return enter()
    // Before it is asked for a body that nobody would take.
    if (!pools.of(upstream, view.policy).places.hasFor(passage.subjectId)) return exchange.refuseBusy()
    admitted.mayContinue()
    body.whenBegun(enter)
  }

  return {
    passOn,
    closeTunnels: () => {
      isClosing = true
      for (const close of tunnels) close()
    },
    close: () => pools.close(),
  }
}

/** The request as the upstream gets it. */
function dispatchOf(
  admitted: Admitted,
  upstream: Upstream,
  body: ClientBody | Buffer | null,
): Dispatcher.DispatchOptions {
  const { request, target, view, caller, protocol } = admitted
  return {
    path: target.path + queryFor(target.query, caller.carriedIn),
    // Node's parser has taken the method; undici's type lists those that it knows.
    method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
    headers: headersForUpstream(request, view, admitted),
    body,
    headersTimeout: upstream.timeoutMs,
    bodyTimeout: upstream.timeoutMs,
    upgrade: protocol ?? null,
  }
}

/** What is done when a passage ends: its outcome is recorded, and a charge given back where the route says so. */
function createEnding({ outcomes, clock, settling }: PassOnPorts, log: Logger) {
  const record = createOutcomeRecorder(outcomes, clock)
  return (passage: Passage, ending: Ending) => {
    record(passage, ending)
    const { charged, refundOn } = passage
    if (charged === undefined || !refundOn.includes(ending.status)) return
    settling?.giveBack(charged).catch((error: unknown) => log.error({ err: error }, 'a charge was not given back'))
  }
}

function passageOf(admitted: Admitted, upstream: Upstream): Passage {
  const { request, response, ownHeaders, caller, route, decisionId, charged, startedAt } = admitted
  const { template: routeTemplate, refundOn = [] } = route
  const subjectId = caller.subject.id
  const passage = { request, response, upstream, ownHeaders, subjectId, routeTemplate, decisionId, startedAt }
  return { ...passage, charged, refundOn }
}

const queryFor = (query: string, carriedIn: CredentialPlace | undefined) =>
  carriedIn?.kind === 'query' ? withoutParameter(query, carriedIn.name) : query
