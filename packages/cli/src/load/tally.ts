import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { LoadStep } from './profile.ts'
import type { Answer } from './sender.ts'

/** Three digits of every latency are kept, up to a minute, in microseconds. */
const histogram = () => createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 })

/** Latencies in milliseconds. */
export interface Latencies {
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p99_9: number
  readonly max: number
  readonly mean: number
}

/** The outcome of a step, in the names of the report. */
export interface StepReport {
  readonly rate: number | null
  readonly users: number | null
  readonly think_ms: number | null
  readonly seconds: number
  readonly sent: number
  readonly answered: number
  readonly failed: number
  /** Due, and never sent: all connections were in use. */
  readonly unsent: number
  readonly answered_per_second: number
  /** From when each request was due, so that a server that stalls is charged with all that it delays. */
  readonly latency_ms: Latencies | null
  /** From when each was written. */
  readonly service_ms: Latencies | null
}

const digits = (value: number) => Math.round(value * 1_000) / 1_000

function latenciesOf(recorded: RecordableHistogram): Latencies | null {
  if (recorded.count === 0) return null
  const at = (percent: number) => recorded.percentile(percent) / 1_000
  const mean = digits(recorded.mean / 1_000)
  return { p50: at(50), p90: at(90), p99: at(99), p99_9: at(99.9), max: recorded.max / 1_000, mean }
}

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

  report(step: LoadStep | undefined): StepReport {
    const { sent, answered, failed, unsent, seconds } = this
    return {
      rate: step?.kind === 'rate' ? step.perSecond : null,
      users: step?.kind === 'users' ? step.users : null,
      think_ms: step?.kind === 'users' ? step.thinkMs : null,
      seconds: digits(seconds),
      sent,
      answered,
      failed,
      unsent,
      answered_per_second: seconds === 0 ? 0 : digits(answered / seconds),
      latency_ms: latenciesOf(this.latency),
      service_ms: latenciesOf(this.service),
    }
  }
}

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
