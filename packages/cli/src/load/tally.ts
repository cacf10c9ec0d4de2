import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { LoadStep } from './profile.ts'
import type { Answer } from './sender.ts'

/** Three digits of every latency are kept, up to a minute, in microseconds. */
const histogram = () => createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 })

const digits = (value: number) => Math.round(value * 1_000) / 1_000

function latenciesOf(recorded: RecordableHistogram) {
  if (recorded.count === 0) return null
  const at = (percent: number) => recorded.percentile(percent) / 1_000
  const mean = digits(recorded.mean / 1_000)
  return { p50: at(50), p90: at(90), p99: at(99), p99_9: at(99.9), max: recorded.max / 1_000, mean }
}

/** Latencies in milliseconds. */
export type Latencies = NonNullable<ReturnType<typeof latenciesOf>>

/** Counts the requests of a step, or of all. */
class StepTally {
  readonly latency = histogram()
  readonly service = histogram()
  sent = 0
  answered = 0
  failed = 0
  unsent = 0
  seconds = 0

  end({ isAnswered, endedMs }: Answer, dueMs: number, sentMs: number): void {
    if (!isAnswered) {
      this.failed += 1
      return
    }
    this.answered += 1
    this.latency.record(Math.max(1, Math.round((endedMs - dueMs) * 1_000)))
    this.service.record(Math.max(1, Math.round((endedMs - sentMs) * 1_000)))
  }

  /** The outcome, in the names of the report. */
  report(step: LoadStep | undefined) {
    const { sent, answered, failed, unsent, seconds } = this
    return {
      rate: step?.kind === 'rate' ? step.perSecond : null,
      users: step?.kind === 'users' ? step.users : null,
      think_ms: step?.kind === 'users' ? step.thinkMs : null,
      seconds: digits(seconds),
      sent,
      answered,
      failed,
      /** Due, and never sent: all connections were in use. */
      unsent,
      answered_per_second: seconds === 0 ? 0 : digits(answered / seconds),
      /** From when each request was due, so that a server that stalls is charged with all that it delays. */
      latency_ms: latenciesOf(this.latency),
      /** From when each was written. */
      service_ms: latenciesOf(this.service),
    }
  }
}

/** The outcome of a step, or of all. */
export type StepReport = ReturnType<StepTally['report']>

/** Decisions that were alike. */
export interface DecisionCount {
  readonly allowed: boolean
  readonly reason: string
  readonly denied_by: string
  readonly count: number
}

/** Counts the outcomes of a load's requests. */
export class Tally {
  readonly steps: readonly StepTally[]
  readonly all = new StepTally()
  readonly #codes = new Map<string, number>()
  readonly #decisions = new Map<string, DecisionCount>()

  constructor(steps: readonly LoadStep[]) {
    this.steps = steps.map(() => new StepTally())
  }

  end(step: StepTally, answer: Answer, dueMs: number, sentMs: number): void {
    step.end(answer, dueMs, sentMs)
    this.all.end(answer, dueMs, sentMs)
    this.#codes.set(answer.code, (this.#codes.get(answer.code) ?? 0) + 1)
    if (answer.decision === undefined) return
    const { allowed, reason, deniedBy: denied_by } = answer.decision
    const name = `${allowed} ${reason} ${denied_by}`
    const count = (this.#decisions.get(name)?.count ?? 0) + 1
    this.#decisions.set(name, { allowed, reason, denied_by, count })
  }

  get codes(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#codes].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** The most frequent first. */
  get decisions(): readonly DecisionCount[] {
    return [...this.#decisions.values()].toSorted((a, b) => b.count - a.count)
  }
}
