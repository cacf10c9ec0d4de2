import type { EstimatedLimit, whyNotEstimated } from '@weir/core/impact/estimate-subject.ts'
import type { LimitEdit, PolicyEdit } from '@weir/policy/impact/policy-edit.ts'

/** One subject's refusals by a limit, then and by the edited limits. */
export interface ImpactOnSubject extends EstimatedLimit {
  readonly subject: string
}

/** What an edit of the policy does to the refusals of one limit. */
export interface ImpactOfLimit extends EstimatedLimit {
  readonly limit: string
  /** `unchanged`: the edit is about others, and this one refuses otherwise because of them. */
  readonly edit: LimitEdit | 'unchanged'
  /** Why nothing is known of the refusals by the edited limits; undefined if something is. */
  readonly notEstimated: ReturnType<typeof whyNotEstimated>
  /** Those whose refusals may change, most refusals first. */
  readonly subjects: readonly ImpactOnSubject[]
  readonly moreSubjects: number
}

/** What an edit of the policy does to recorded requests. */
export interface Impact {
  /** `minutes`: bounds from rollups. `replay`: every single request, decided again. */
  readonly method: 'minutes' | 'replay'
  /** Whether the numbers are those that the edited limits give for these requests at their recorded times. */
  readonly isExact: boolean
  /** What the numbers rest on, a sentence each. */
  readonly assumptions: readonly string[]
  readonly limits: readonly ImpactOfLimit[]
  /** Of all limits, for the requests that the edit may touch. */
  readonly total: EstimatedLimit
  /** Requests of the subjects that the edit touches. */
  readonly requests: number
  readonly subjects: number
  /** Of a replay: requests that were admitted and would be refused, and the other way round. */
  readonly turned?: { readonly toRefused: number; readonly toAdmitted: number }
}

/** Subjects that an answer names by limit; the others are counted. */
const namedMax = 100

const mostOf = ({ before, atMost }: EstimatedLimit) => Math.max(before, atMost)
const isKept = ({ before, atLeast, atMost }: EstimatedLimit) => before === atLeast && before === atMost

/** What the numbers of every answer rest on. */
export const assumedAlways: readonly string[] = [
  'The same requests come at the same times: no client waits, tries again or stays away because of the edit.',
  'Routes, costs and keys are those that were recorded, and the subjects of the policy have the plans that the edited policy gives them.',
]

const iso = (ms: number) => new Date(ms).toISOString()
/** From when on the edited limits count in an answer. */
export const emptyAt = (ms: number): string =>
  `Counts are empty at ${iso(ms)}, and the edited limits hold from then on.`

/** Collects what an edit does, subject by subject. */
export class ImpactSums {
  readonly #edit: PolicyEdit
  readonly #subjects = new Map<string, ImpactOnSubject[]>()
  readonly #total = { before: 0, atLeast: 0, atMost: 0 }
  #requests = 0
  #count = 0

  constructor(edit: PolicyEdit) {
    this.#edit = edit
  }

  add(
    subject: string,
    found: {
      readonly limits: ReadonlyMap<string, EstimatedLimit>
      readonly total: EstimatedLimit
      readonly count: number
    },
  ): void {
    const { before, atLeast, atMost } = found.total
    this.#total.before += before
    this.#total.atLeast += atLeast
    this.#total.atMost += atMost
    this.#requests += found.count
    this.#count += 1
    for (const [limit, one] of found.limits) {
      const all = this.#subjects.get(limit) ?? []
      all.push({ subject, ...one })
      this.#subjects.set(limit, all)
    }
  }

  /** @param whyNot says why a limit's refusals by the edited policy are not known */
  result(whyNot: (limit: string) => ImpactOfLimit['notEstimated']) {
    const limits: ImpactOfLimit[] = []
    for (const name of new Set([...this.#edit.limits.keys(), ...this.#subjects.keys()])) {
      const edit = this.#edit.limits.get(name) ?? 'unchanged'
      const all = this.#subjects.get(name) ?? []
      const sum = (of: 'before' | 'atLeast' | 'atMost') => all.reduce((total, one) => total + one[of], 0)
      const sums = { before: sum('before'), atLeast: sum('atLeast'), atMost: sum('atMost') }
      const isOther = sums.before < sums.atLeast || sums.before > sums.atMost
      const notEstimated = edit === 'removed' ? undefined : whyNot(name)
      if (edit === 'unchanged' && (!isOther || notEstimated !== undefined)) continue
      const changed = all.filter((one) => !isKept(one)).sort((one, other) => mostOf(other) - mostOf(one))
      const [subjects, moreSubjects] = [changed.slice(0, namedMax), Math.max(0, changed.length - namedMax)]
      limits.push({ limit: name, edit, notEstimated, ...sums, subjects, moreSubjects })
    }
    const order = ({ edit }: ImpactOfLimit) => (edit === 'unchanged' ? 1 : 0)
    limits.sort((one, other) => order(one) - order(other) || (one.limit < other.limit ? -1 : 1))
    return { limits, total: { ...this.#total }, requests: this.#requests, subjects: this.#count }
  }
}
