import type { Impact as Shown } from '@weir/api/policy.ts'
import type { RequestRow } from './impact-queries.ts'
import type { PolicyEdit } from './policy-edit.ts'

/** The impact of an edit of the policy on recorded requests, each of which was decided again. */
export type Impact = Omit<Shown, 'from' | 'to' | 'complete_through' | 'silent' | 'gaps'>

type ImpactOfLimit = Impact['limits'][number]
/** Refusals, as recorded and by the edited limits. */
type Refusals = Impact['refused']
type Sums = { -readonly [Name in keyof Refusals]: Refusals[Name] }

const sumOf = (all: readonly Refusals[]): Refusals =>
  all.reduce<Sums>((sum, { before, after }) => ({ before: sum.before + before, after: sum.after + after }), {
    before: 0,
    after: 0,
  })
const mostOf = ({ before, after }: Refusals) => Math.max(before, after)

/** Collects the outcomes of the edit, record by record. */
export class ImpactSums {
  readonly #edit: PolicyEdit
  /** By limit, then by subject. */
  readonly #refusals = new Map<string, Map<string, Sums>>()
  readonly #turned = { to_refused: 0, to_admitted: 0 }
  #decisions = 0

  constructor(edit: PolicyEdit) {
    this.#edit = edit
  }

  #of(limit: string, subject: string): Sums {
    const ofLimit = this.#refusals.get(limit) ?? new Map<string, Sums>()
    this.#refusals.set(limit, ofLimit)
    const sums = ofLimit.get(subject) ?? { before: 0, after: 0 }
    ofLimit.set(subject, sums)
    return sums
  }

  /** @param refused how many of the record's requests each of the edited limits refuses */
  add(subject: string, row: RequestRow, refused: ReadonlyMap<string, number>): void {
    this.#decisions += row.count
    const wasRefused = row.outcome === 'deny'
    if (wasRefused && row.denied_by !== '') this.#of(row.denied_by, subject).before += row.count
    let all = 0
    for (const [limit, count] of refused) {
      this.#of(limit, subject).after += count
      all += count
    }
    if (wasRefused) this.#turned.to_admitted += row.count - all
    else this.#turned.to_refused += all
  }

  result(allDecisions: number) {
    const limits = [...new Set([...this.#edit.limits.keys(), ...this.#refusals.keys()])].map((limit): ImpactOfLimit => {
      const all = [...(this.#refusals.get(limit) ?? [])].map(([subject, sums]) => ({ subject, ...sums }))
      const changed = all.filter(({ before, after }) => before !== after)
      const subjects = changed.sort((one, other) => mostOf(other) - mostOf(one))
      return { limit, edit: this.#edit.limits.get(limit) ?? 'unchanged', ...sumOf(all), subjects }
    })
    const order = ({ edit }: ImpactOfLimit) => (edit === 'unchanged' ? 1 : 0)
    return {
      decisions: this.#decisions,
      share: allDecisions === 0 ? null : Math.min(1, this.#decisions / allDecisions),
      refused: sumOf(limits),
      ...this.#turned,
      limits: limits
        .filter(({ edit, subjects }) => edit !== 'unchanged' || subjects.length > 0)
        .sort((one, other) => order(one) - order(other) || (one.limit < other.limit ? -1 : 1)),
    }
  }
}
