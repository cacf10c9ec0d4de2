import type { ShownDecision } from '@weir/api/decisions.ts'
import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { storedDecision } from '@weir/contracts/decision-columns.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import type { LogRecord } from '@weir/kafka/partition-log.ts'
import { shownDecision } from './shown-decision.ts'

/** A decision as it came, with how each kind of reader sees it. */
export class LiveDecision {
  /** Where it is in Kafka: `PARTITION-OFFSET`. */
  readonly id: string
  readonly subject: string
  readonly #all: ShownDecision
  readonly #own: ShownDecision
  /** Made once for all readers of a kind. */
  readonly #texts: { all?: string; own?: string } = {}

  constructor(id: string, all: ShownDecision, own: ShownDecision) {
    this.id = id
    this.subject = all.subject
    this.#all = all
    this.#own = own
  }

  seenBy({ isOwn }: Reach): ShownDecision {
    return isOwn ? this.#own : this.#all
  }

  /** Its event, as it is sent. */
  textFor({ isOwn }: Reach): string {
    const kind = isOwn ? 'own' : 'all'
    this.#texts[kind] ??= `event: decision\nid: ${this.id}\ndata: ${JSON.stringify(isOwn ? this.#own : this.#all)}\n\n`
    return this.#texts[kind]
  }
}

const oneSubject = Reach.of([])

/** Reads a record; undefined for what is no decision: a correction, a watermark, or what cannot be read. */
export function liveDecision(partition: number, { offset, value }: LogRecord): LiveDecision | undefined {
  const parsed = value === null ? undefined : parseDecision(value)
  if (parsed?.kind !== 'decision' || parsed.decision.count === 0) return undefined
  const row = storedDecision(parsed.decision, parsed.tsMs)
  return new LiveDecision(`${partition}-${offset}`, shownDecision(row, Reach.everybody), shownDecision(row, oneSubject))
}

/** So many are kept for readers that come back, some ten megabytes: seconds of a high load, hours of a low one. */
const keptMax = 10_000

/** The last decisions in the order in which they came, which is the same for every reader of this process. */
export class DecisionRing {
  readonly #kept: LiveDecision[] = []
  /** Number of the first that is not there yet; the first of all had 0. */
  end = 0

  /** Number of the oldest that is kept. */
  get start(): number {
    return this.end - this.#kept.length
  }

  add(decision: LiveDecision): void {
    this.#kept[this.end % keptMax] = decision
    this.end += 1
  }

  at(number: number): LiveDecision | undefined {
    return number < this.start || number >= this.end ? undefined : this.#kept[number % keptMax]
  }

  /** Number of the decision of an id; undefined if it is not kept any more, or was never there. */
  find(id: string): number | undefined {
    for (let number = this.end - 1; number >= this.start; number -= 1) if (this.at(number)?.id === id) return number
    return undefined
  }
}
