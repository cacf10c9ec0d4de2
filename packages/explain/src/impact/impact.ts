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

/** Routes that a limit's row names. */
const routesMax = 10

type SumsByName = Map<string, Map<string, Sums>>

function sumsIn(all: SumsByName, limit: string, name: string): Sums {
  const ofLimit = all.get(limit) ?? new Map<string, Sums>()
  all.set(limit, ofLimit)
  const sums = ofLimit.get(name) ?? { before: 0, after: 0 }
  ofLimit.set(name, sums)
  return sums
}

/** Those whose refusals change, the most refusals first. */
const changedOf = (all: readonly (readonly [string, Sums])[]) =>
  all.filter(([, { before, after }]) => before !== after).toSorted(([, one], [, other]) => mostOf(other) - mostOf(one))

/** Collects the outcomes of the edit, record by record. */
export class ImpactSums {
  readonly #edit: PolicyEdit
  /** By limit, then by subject. */
  readonly #refusals: SumsByName = new Map()
  /** By limit, then by route. */
  readonly #byRoute: SumsByName = new Map()
  readonly #turned = { to_refused: 0, to_admitted: 0 }
  #decisions = 0

  constructor(edit: PolicyEdit) {
    this.#edit = edit
  }

  #count(limit: string, subject: string, route: string, side: keyof Sums, count: number): void {
    sumsIn(this.#refusals, limit, subject)[side] += count
    sumsIn(this.#byRoute, limit, route)[side] += count
  }

  /** @param refused how many of the record's requests each of the edited limits refuses */
  add(subject: string, row: RequestRow, refused: ReadonlyMap<string, number>): void {
    this.#decisions += row.count
    const wasRefused = row.outcome === 'deny'
    if (wasRefused && row.denied_by !== '') this.#count(row.denied_by, subject, row.route, 'before', row.count)
    let all = 0
    for (const [limit, count] of refused) {
      this.#count(limit, subject, row.route, 'after', count)
      all += count
    }
    if (wasRefused) this.#turned.to_admitted += row.count - all
    else this.#turned.to_refused += all
  }

  result(allDecisions: number) {
    const limits = [...new Set([...this.#edit.limits.keys(), ...this.#refusals.keys()])].map((limit): ImpactOfLimit => {
      const all = [...(this.#refusals.get(limit) ?? [])]
      const subjects = changedOf(all).map(([subject, sums]) => ({ subject, ...sums }))
      const routes = changedOf([...(this.#byRoute.get(limit) ?? [])]).map(([route, sums]) => ({ route, ...sums }))
      const edit = this.#edit.limits.get(limit) ?? 'unchanged'
      return { limit, edit, ...sumOf(all.map(([, sums]) => sums)), subjects, routes: routes.slice(0, routesMax) }
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
