import type { Limit } from '@weir/core/limits/limit.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { createLimitResolver } from '@weir/policy/match/resolve-limits.ts'
import { unlistedSubject } from '@weir/policy/named-subject.ts'
import { noPlan, type Policy, type Route, type Subject } from '@weir/policy/policy.ts'

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

/** A recorded request's subject and limits under the edited policy. */
export interface Resolved {
  readonly subject: Subject
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

/** A policy in force and an edited one: which limits the edit is about, and which a recorded request meets under it. */
export class PolicyEdit {
  readonly after: PolicySide
  /** By name. */
  readonly limits: ReadonlyMap<string, LimitEdit>
  /** The subject and the limits of such a request under the edited policy. */
  readonly resolve: (names: RecordedNames) => Resolved

  /** @param editedSubjects ids of the subjects that the edit itself touches */
  constructor(before: PolicySide, after: PolicySide, editedSubjects: readonly string[]) {
    this.after = after
    this.limits = editedLimits(before, after, editedSubjects)
    this.resolve = createResolver(before, after)
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
    return { subject, limits: limitsOf(subject, route) }
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
