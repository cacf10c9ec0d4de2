import type { Route, Upstream } from '@weir/core/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Caller, CredentialPlace } from '../../http/identify.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { Ports } from '../../ports.ts'
import type { ChargedDecision, Settling } from '../../settle.ts'
import type { Arrival } from './arrival.ts'
import { ClientBody, hasBody } from './client-body.ts'
import { Exchange } from './exchange.ts'
import { createOutcomeRecorder, type Ending, type Passage } from './passage.ts'
import { busyRetrySeconds, noUpstream, upstreamBusy, writeProblem } from './problems.ts'
import { withoutParameter } from './read-target.ts'
import { headersForUpstream } from './request-headers.ts'
import { openTunnel } from './tunnel.ts'
import { createUpstreamPools, isFull } from './upstream-pools.ts'

/** A request that was allowed. */
export interface Admitted extends Arrival {
  readonly view: PolicyView
  readonly route: Route
  readonly caller: Extract<Caller, { kind: 'known' }>
  readonly decisionId: string
  /** The limit that it passed without room; empty for none. */
  readonly degradedBy: string
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
  /** Ends the tunnels, which would never end by themselves. */
  closeTunnels(): void
  /** Breaks off what is still with an upstream. */
  close(): Promise<void>
}

type PassOnPorts = Pick<Ports, 'outcomes' | 'clock'> & { readonly settling?: Pick<Settling, 'giveBack'> | undefined }

export function createPassOn(ports: PassOnPorts, log: Logger): PassOn {
  const pools = createUpstreamPools()
  const recordOutcome = createEnding(ports, log)
  const tunnels = new Set<() => void>()

  /** Where one goes, if it can be passed on at all; else it has been answered. */
  const findPool = ({ view, request, response, ownHeaders }: Admitted, passage: Passage | undefined) => {
    if (passage === undefined) {
      writeProblem(response, noUpstream, ownHeaders)
      return undefined
    }
    if (response.destroyed || request.socket.destroyed) {
      recordOutcome(passage, { status: 499, bytesIn: 0, bytesOut: 0, error: 'client_gone' })
      return undefined
    }
    const pool = pools.of(passage.upstream, view.policy)
    if (!isFull(pool)) return pool
    recordOutcome(passage, { status: upstreamBusy.status, bytesIn: 0, bytesOut: 0, error: 'busy' })
    writeProblem(response, upstreamBusy, [...ownHeaders, 'retry-after', `${busyRetrySeconds}`])
    return undefined
  }

  const passOn = (admitted: Admitted) => {
    const { request, response, view, target, caller, protocol, readBody } = admitted
    const upstream = view.resolveUpstream(request.headers.host ?? '', admitted.route)
    const passage = upstream && passageOf(admitted, upstream)
    const pool = findPool(admitted, passage)
    if (pool === undefined || passage === undefined) return
    const body = readBody ?? (hasBody(request) ? new ClientBody(request) : null)
    if (readBody === undefined && body !== null) admitted.mayContinue()
    const exchange = new Exchange(passage, body, {
      ended: (ending) => recordOutcome(passage, ending),
      released: () => {
        pool.open -= 1
      },
      failed: (error) => log.warn({ err: error, upstream: passage.upstream.name }, 'upstream failed'),
      switched: (headers, socket) => {
        response.detachSocket(request.socket)
        const close = openTunnel(passage, protocol ?? '', { headers, socket }, (bytes) => {
          tunnels.delete(close)
          pool.open -= 1
          recordOutcome(passage, { status: 101, ...bytes, error: '' })
        })
        tunnels.add(close)
      },
    })
    pool.open += 1
    pool.pool.dispatch(
      {
        path: target.path + queryFor(target.query, caller.carriedIn),
        method: request.method ?? 'GET',
        headers: headersForUpstream(request, view.policy.identity, admitted),
        body,
        headersTimeout: passage.upstream.timeoutMs,
        bodyTimeout: passage.upstream.timeoutMs,
        upgrade: protocol ?? null,
      },
      exchange,
    )
  }

  return {
    passOn,
    closeTunnels: () => {
      for (const close of tunnels) close()
    },
    close: () => pools.close(),
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
