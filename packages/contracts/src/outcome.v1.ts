import { jsonText } from './json-text.ts'
import { formatTs } from './timestamp.ts'

/** Why a proxied request failed. Empty: the upstream's whole answer reached the client. */
export type OutcomeError = '' | 'client_gone' | 'timeout' | 'unreachable' | 'broken_off' | 'busy'

/**
 * The upstream's answer to an allowed request: the value of a record in `weir.outcomes.v1`, whose key is the
 * subject. Denied requests have none, because no upstream saw them.
 */
export interface OutcomeInput {
  /** The decision's id. */
  readonly id: string
  readonly tsMs: number
  readonly subject: string
  /** The template, never the path of the request. */
  readonly route: string
  readonly method: string
  /** The status that the client got; 499 if it left before, 101 for a tunnel. */
  readonly status: number
  /** From the request's head to the answer's end; of a tunnel, how long it was open. */
  readonly durationMs: number
  /** Bytes of the bodies as they went over the wire, without framing. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** The upstream's name in the policy. */
  readonly upstream: string
  readonly error: OutcomeError
}

/**
 * The record as one line of compact JSON, like the decision's: without `journal` and `seq`, which the log adds, and
 * without the closing brace.
 */
export function encodeOutcomeOpen(o: OutcomeInput): string {
  return `{"v":1,"id":"${o.id}","ts":"${formatTs(o.tsMs)}","subject":${jsonText(o.subject)},"route":${jsonText(o.route)},"method":${jsonText(o.method)},"status":${o.status},"duration_ms":${o.durationMs},"bytes_in":${o.bytesIn},"bytes_out":${o.bytesOut},"upstream":${jsonText(o.upstream)},"error":"${o.error}"`
}
