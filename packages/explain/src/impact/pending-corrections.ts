import type { Decision } from '@weir/core/limits/decision.ts'
import type { CorrectionRow, RequestRow } from './impact-queries.ts'
import type { Replay, ReplayedRequest } from './replay.ts'

/**
 * The corrections of replayed decisions. When they were made is not recorded, but between which records of their
 * journal: each is due before the next of these, or before what was decided after it was metered.
 */
export class PendingCorrections {
  /** By journal, in the order of its records. */
  readonly #waiting: ReadonlyMap<string, CorrectionRow[]>
  readonly #corrected: ReadonlySet<string>
  readonly #charged = new Map<string, { readonly request: ReplayedRequest; readonly decision: Decision }>()

  constructor(rows: readonly CorrectionRow[]) {
    this.#waiting = Map.groupBy(
      [...rows].sort((one, other) => other.seq - one.seq),
      ({ journal }) => journal,
    )
    this.#corrected = new Set(rows.map(({ corrects }) => corrects))
  }

  /** Keeps an admission that will be corrected. */
  keep(id: string, request: ReplayedRequest, decision: Decision): void {
    if (this.#corrected.has(id) && decision.allowed) this.#charged.set(id, { request, decision })
  }

  /** Applies what was recorded before this decision, and says of how many decisions. */
  apply({ journal, seq, ts_ms: nowMs }: RequestRow, replay: Replay): number {
    let applied = 0
    for (const [own, waiting] of this.#waiting) {
      for (let one = waiting.at(-1); one !== undefined; one = waiting.at(-1)) {
        if (!(own === journal && one.seq < seq) && one.received_ms > nowMs) break
        waiting.pop()
        const charged = this.#charged.get(one.corrects)
        if (charged === undefined) continue
        replay.correct(charged.request, charged.decision, one.adjustment, nowMs)
        this.#charged.delete(one.corrects)
        applied += 1
      }
    }
    return applied
  }
}
