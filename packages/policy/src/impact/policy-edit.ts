import type { Limit } from '@weir/core/limits/limit.ts'
import { unmatchedRoute } from '../match/match-route.ts'
import { createLimitResolver } from '../match/resolve-limits.ts'
import { unlistedSubject } from '../named-subject.ts'
import { noPlan, type OwnLimits, ownLimitSetsOf, type Policy, type Route, type Subject } from '../policy.ts'

/** Definitions, with the subjects as they are under these. */
export interface PolicySide {
  readonly policy: Policy
  readonly subjectOf: (id: string) => Subject | undefined
}

/** Whose request was recorded, and to what. */
export interface RecordedNames {
  readonly subject: string
  readonly plan: string
  readonly route: string
}

/** A recorded request's subject and limits under one policy. */
export interface Resolved {
  readonly subject: Subject
  readonly route: Route
  readonly limits: readonly Limit[]
}

/**
 * What an edit does to a limit. `applied`: it is as it was, and applies to other requests, or otherwise to some
 * subjects.
 */
export type LimitEdit = 'added' | 'removed' | 'changed' | 'applied'

/** Subjects kept at most; a subject is found again in a few microseconds. */
const keptMax = 100_000

/** Whether a token or a trusted header may put a subject on another plan than its own. */
const mayBePut = ({ identity: { jwt, trustedHeaders } }: Policy) =>
  jwt.some(({ planClaim }) => planClaim !== undefined) || trustedHeaders?.planHeader !== undefined

const nameSet = (limits: readonly Limit[]) => new Set(limits.map(({ name }) => name))
const differing = (one: ReadonlySet<string>, other: ReadonlySet<string>) =>
  [...one, ...other].filter((name) => one.has(name) !== other.has(name))
const isSame = (one: object | undefined, other: object | undefined) => JSON.stringify(one) === JSON.stringify(other)

/** A policy in force and an edited one: which limits the edit is about, and which of them a recorded request meets. */
export class PolicyEdit {
  readonly before: PolicySide
  readonly after: PolicySide
  /** By name. */
  readonly limits: ReadonlyMap<string, LimitEdit>
  readonly #resolveBefore: (names: RecordedNames) => Resolved
  readonly #resolveAfter: (names: RecordedNames) => Resolved
  readonly #ownLimits: ReadonlySet<OwnLimits>
  /** Each has limits of its own under one of the policies; the last is any other route. */
  readonly #routes: readonly string[]
  readonly #same = new WeakMap<readonly Limit[], WeakMap<readonly Limit[], boolean>>()

  /** @param editedSubjects ids of the subjects that the edit itself touches */
  constructor(before: PolicySide, after: PolicySide, editedSubjects: readonly string[]) {
    this.before = before
    this.after = after
    this.limits = editedLimits(before, after, editedSubjects)
    const edited = editedSubjects.flatMap((id) => after.subjectOf(id)?.ownLimits ?? [])
    this.#ownLimits = new Set([...ownLimitSetsOf(after.policy), ...edited])
    const limited = [...before.policy.routes, ...after.policy.routes].filter(({ limits }) => limits.length > 0)
    this.#routes = [...new Set(limited.map(({ template }) => template)), unmatchedRoute.template]
    this.#resolveBefore = createResolver(before, before)
    this.#resolveAfter = createResolver(before, after)
  }

  /** The subject and the limits of such a request under the edited policy. */
  resolve(names: RecordedNames): Resolved {
    return this.#resolveAfter(names)
  }

  /** Whether such a request meets other limits than before, or the same in another order. */
  isTouched(names: RecordedNames): boolean {
    const [{ limits: before, subject: was }, { limits: after, subject }] = [
      this.#resolveBefore(names),
      this.#resolveAfter(names),
    ]
    if (was.timeZone !== subject.timeZone || was.anchor !== subject.anchor) return true
    const ofBefore = this.#same.get(before) ?? new WeakMap<readonly Limit[], boolean>()
    this.#same.set(before, ofBefore)
    const known = ofBefore.get(after) ?? isSame(before, after)
    ofBefore.set(after, known)
    return !known
  }

  /** False for a subject of the policy none of whose requests is touched. */
  mayTouch(subject: string): boolean {
    const plan = this.before.subjectOf(subject)?.plan.name
    if (plan === undefined) return true
    return this.#routes.some((route) => this.isTouched({ subject, plan, route }))
  }

  /** The forms of a limit under the edited policy: for all who have none of their own, and the subjects' own. */
  versionsOf(name: string): readonly Limit[] {
    const own = [...this.#ownLimits].map((limits) => limits.get(name))
    return [this.after.policy.limits.get(name), ...own].filter((limit) => limit !== undefined)
  }

  /** The routes that alone bring the limit to a request; undefined if a plan or `applies: all` does. */
  routesOf(name: string): readonly string[] | undefined {
    const { plans, limitsForAll, routes } = this.after.policy
    const isIn = (limits: readonly Limit[]) => limits.some((limit) => limit.name === name)
    if (isIn(limitsForAll) || plans.values().some(({ limits }) => isIn(limits))) return undefined
    return routes.filter(({ limits }) => isIn(limits)).map(({ template }) => template)
  }
}

/**
 * Subjects that the policy lists are on the plan that it gives them, unless something else may have put them on the
 * recorded one; all others on the recorded plan.
 */
function createResolver(before: PolicySide, { policy, subjectOf }: PolicySide): (names: RecordedNames) => Resolved {
  const limitsOf = createLimitResolver(policy)
  const routes = new Map(policy.routes.map((route): [string, Route] => [route.template, route]))
  const isPut = mayBePut(policy)
  const subjects = new Map<string, Subject>()
  const find = (id: string, plan: string): Subject => {
    const recorded = policy.plans.get(plan) ?? noPlan
    const listed = subjectOf(id)
    if (listed === undefined) return unlistedSubject(id, recorded)
    const isRecorded = isPut && before.subjectOf(id)?.plan.name !== plan
    return isRecorded ? { ...listed, plan: recorded } : listed
  }
  return ({ subject: id, plan, route: template }) => {
    const name = `${plan}\n${id}`
    let subject = subjects.get(name)
    if (subject === undefined) {
      if (subjects.size >= keptMax) subjects.clear()
      subject = find(id, plan)
      subjects.set(name, subject)
    }
    const route = routes.get(template) ?? unmatchedRoute
    return { subject, route, limits: limitsOf(subject, route) }
  }
}

function editedLimits(
  before: PolicySide,
  after: PolicySide,
  editedSubjects: Iterable<string>,
): ReadonlyMap<string, LimitEdit> {
  const edits = new Map<string, LimitEdit>()
  const [old, edited] = [before.policy, after.policy]
  for (const name of new Set([...old.limits.keys(), ...edited.limits.keys()])) {
    const [was, is] = [old.limits.get(name), edited.limits.get(name)]
    if (!isSame(was, is)) edits.set(name, was === undefined ? 'added' : is === undefined ? 'removed' : 'changed')
  }
  const apply = (names: Iterable<string>) => {
    for (const name of names) if (!edits.has(name)) edits.set(name, 'applied')
  }
  const limitsOf = (one: { readonly limits: readonly Limit[] } | undefined) => nameSet(one?.limits ?? [])
  for (const name of new Set([...old.plans.keys(), ...edited.plans.keys()])) {
    apply(differing(limitsOf(old.plans.get(name)), limitsOf(edited.plans.get(name))))
  }
  const routesOf = ({ routes }: Policy) => new Map(routes.map((route) => [route.template, route]))
  const [oldRoutes, newRoutes] = [routesOf(old), routesOf(edited)]
  for (const template of new Set([...oldRoutes.keys(), ...newRoutes.keys()])) {
    apply(differing(limitsOf(oldRoutes.get(template)), limitsOf(newRoutes.get(template))))
  }
  for (const id of editedSubjects) {
    const [was, is] = [before.subjectOf(id), after.subjectOf(id)]
    apply(differing(limitsOf(was?.plan), limitsOf(is?.plan)))
    const own = new Set([...(was?.ownLimits.keys() ?? []), ...(is?.ownLimits.keys() ?? [])])
    apply([...own].filter((name) => !isSame(was?.ownLimits.get(name), is?.ownLimits.get(name))))
    if (was?.timeZone !== is?.timeZone || was?.anchor !== is?.anchor) apply(limitsOf(is?.plan))
  }
  return edits
}
