import type { IncomingMessage, ServerResponse } from 'node:http'
import type { OutcomeInput } from '@weir/contracts/outcome.v1.ts'
import type { ChargedDecision } from '@weir/decide/types.ts'
import type { Caller } from '@weir/identity/caller.ts'
import type { Route, Upstream } from '@weir/policy/policy.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { RequestTrace } from '../../trace/request-trace.ts'
import type { MeteredExchange } from './metered-exchange.ts'
import type { Target } from './read-target.ts'
import type { SetHeaders } from './upstream-headers.ts'

/** A request as it came, before anything is known about it but where it goes. */
export interface IncomingRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: Target
  /** By `performance.now()`, which no change of the clock moves. */
  readonly startedAt: number
  /** The protocol that the client wants to switch to; undefined for plain requests. */
  readonly protocol: string | undefined
  /** Lets the client send its body, where it waits for a 100. */
  readonly mayContinue: () => void
  /** Headers by which a page may read the answer; undefined where the upstream writes them, or no page asks. */
  readonly cors?: readonly string[] | undefined
  /** Whether the process is stopping, to be asked when the answer is written: a request may have waited long. */
  readonly isClosing: () => boolean
}

/** A request that was allowed, on its way to the upstream and back. */
export interface ProxiedRequest extends IncomingRequest {
  readonly view: PolicyView
  readonly route: Route
  /** As the upstream gets it. */
  readonly path: string
  readonly upstream: Upstream
  /** Headers that the upstream gets instead of the client's; undefined for none. */
  readonly setHeaders: SetHeaders | undefined
  readonly caller: Extract<Caller, { kind: 'known' }>
  /** Empty where the decision has no record. */
  readonly decisionId: string
  /** The limit that it exceeded without being denied; empty for none. */
  readonly degradedBy: string
  /** Names that the client's `Connection` gives, by `connectionNamed`. */
  readonly hopByHop: ReadonlySet<string> | undefined
  /** The charge that is refunded if the request ends with a status of its route's `refundOn`. */
  readonly charged: ChargedDecision | undefined
  /** Gives back the slots of limits that count requests in flight; undefined for none. May be called again. */
  readonly free: (() => void) | undefined
  /** Weir's own headers of the answer, names and values in turns. */
  readonly ownHeaders: readonly string[]
  /** The body, where it was read for the cost. */
  readonly readBody: Buffer | undefined
  /** What reads what it uses; undefined for one that is not metered, or whose decision has no record. */
  readonly metered: MeteredExchange | undefined
  /** Undefined for a request that is not traced. */
  readonly trace: RequestTrace | undefined
}

/** How a proxied request ended. */
export type ProxyOutcome = Pick<OutcomeInput, 'status' | 'bytesIn' | 'bytesOut' | 'error'>
