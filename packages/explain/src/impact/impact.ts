import type { RequestRow } from './impact-queries.ts'
import type { LimitEdit, PolicyEdit } from './policy-edit.ts'

/** Refusals, as recorded and by the edited limits. */
export interface Refusals {
  readonly before: number
  readonly after: number
}

/** The impact of an edit of the policy on the refusals of one limit. */
export interface ImpactOfLimit extends Refusals {
  readonly limit: string
  /** `unchanged`: the edit is about others, and this one refuses otherwise because of them. */
  readonly edit: LimitEdit | 'unchanged'
  /** Those whose refusals change, most refusals first. */
  readonly subjects: readonly (Refusals & { readonly subject: string })[]
}

/** The impact of an edit of the policy on recorded requests, each of which was decided again. */
export interface Impact {
  /** Whether the numbers are those that the edited limits give for these requests at their recorded times. */
  readonly isExact: boolean
  /** What the numbers rest on, a sentence each. */
  readonly assumptions: readonly string[]
  /** Whose requests were decided again. */
  readonly subjects: number
  readonly decisions: number
  /** The part of all decisions of the span, from 0 to 1; undefined where none was made. */
  readonly share: number | undefined
  /** By all limits. */
  readonly total: Refusals
  /** Requests that were admitted and would be refused, and the other way round. */
  readonly turned: { readonly toRefused: number; readonly toAdmitted: number }
  readonly limits: readonly ImpactOfLimit[]
}

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
  readonly #turned = { toRefused: 0, toAdmitted: 0 }
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
    if (wasRefused) this.#turned.toAdmitted += row.count - all
    else this.#turned.toRefused += all
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
      share: allDecisions === 0 ? undefined : Math.min(1, this.#decisions / allDecisions),
      total: sumOf(limits),
      turned: this.#turned,
      limits: limits
        .filter(({ edit, subjects }) => edit !== 'unchanged' || subjects.length > 0)
        .sort((one, other) => order(one) - order(other) || (one.limit < other.limit ? -1 : 1)),
    }
  }
}
