import type { IncomingMessage, ServerResponse } from 'node:http'
import { encodeOutcomeOpen, type OutcomeError } from '@weir/contracts/outcome.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Upstream } from '@weir/policy/policy.ts'
import type { OutcomeLog } from '../../decide/ports.ts'
import type { ChargedDecision } from '../../decide/types.ts'
import { recordedMethod } from '../../http/recorded-method.ts'

/** An allowed request on its way to the upstream and back. */
export interface Passage {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upstream: Upstream
  /** What we say on the answer, names and values in turns. */
  readonly ownHeaders: readonly string[]
  readonly subjectId: string
  readonly routeTemplate: string
  readonly decisionId: string
  /** What is given back when it ends with one of these statuses, if anything. */
  readonly charged: ChargedDecision | undefined
  readonly refundOn: readonly number[]
  /** By `performance.now()`, which no change of the clock moves. */
  readonly startedAt: number
}

/** How a passage ended. */
export interface Ending {
  readonly status: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly error: OutcomeError
}

/** Records how passages end. One that the log does not take is only missed. */
export function createOutcomeRecorder(outcomes: OutcomeLog, clock: Clock): (passage: Passage, ending: Ending) => void {
  return function recordOutcome(passage, ending) {
    const { subjectId, routeTemplate, decisionId, request, upstream, startedAt } = passage
    // Of a decision without a record nobody could look it up.
    if (decisionId === '') return
    const line = encodeOutcomeOpen({
      id: decisionId,
      tsMs: clock.nowMs(),
      subject: subjectId,
      route: routeTemplate,
      method: recordedMethod(request.method ?? ''),
      ...ending,
      durationMs: Math.round((performance.now() - startedAt) * 1_000) / 1_000,
      upstream: upstream.name,
    })
    outcomes.append(subjectId, line)
  }
}
