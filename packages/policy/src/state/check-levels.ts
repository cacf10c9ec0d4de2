import { finish, type Steps } from '@weir/core/steps.ts'
import { type Level, levelsMax } from '../reader/level-rules.ts'
import { type ProblemList, pathBelow } from '../reader/policy-reader.ts'
import type { ChangeSet } from './check-identities.ts'
import type { SubjectRules } from './live-policy.ts'
import { keyList, type PackedIdentities, type PackedSubject } from './packed-identities.ts'

const pathOf = (id: string) => pathBelow('subjects', id)

const packedLevel = (packed: PackedSubject | undefined, rules: SubjectRules): Level | undefined =>
  packed?.shape && { parent: packed.parent?.id, plan: rules.plans.get(packed.shape.plan) }

/** Finds levels as the change makes them; those found are kept, as many are below one. */
function levelsAfter(subjects: ChangeSet['subjects'], identities: PackedIdentities, rules: SubjectRules) {
  const known = new Map<string, Level | undefined>()
  return (id: string, packed?: PackedSubject): Level | undefined => {
    const found = known.get(id)
    if (found !== undefined) return found
    const body = subjects.get(id)?.body
    const parent = typeof body?.parent === 'string' ? body.parent : undefined
    const level = subjects.has(id)
      ? body && { parent, plan: rules.plans.get(String(body.plan)) }
      : packedLevel(packed ?? identities.subjects.get(id), rules)
    known.set(id, level)
    return level
  }
}

/** How many right below a subject have a plan, without those that a change puts or deletes. */
type CountsBelow = (parent: PackedSubject) => readonly { readonly plan: string; readonly count: number }[]

function countsBeside(subjects: ChangeSet['subjects'], identities: PackedIdentities): CountsBelow {
  const changed = new Map<PackedSubject, string[]>()
  for (const id of subjects.keys()) {
    const { parent, shape } = identities.subjects.get(id) ?? {}
    if (parent === undefined || shape === undefined) continue
    const plans = changed.get(parent) ?? []
    plans.push(shape.plan)
    changed.set(parent, plans)
  }
  return (parent) => {
    const [all, plans] = [identities.parents.get(parent) ?? [], changed.get(parent)]
    if (plans === undefined) return all
    const left = all.map(({ plan, count }) => ({ plan, count: count - plans.filter((one) => one === plan).length }))
    return left.filter(({ count }) => count > 0)
  }
}

/** Whether anybody is where nobody can be: one look for each plan below a parent, one parent at a step. */
function* isAnybodyWrong(
  identities: PackedIdentities,
  rules: SubjectRules,
  levelOf: (id: string, packed?: PackedSubject) => Level | undefined,
  countsBelow: CountsBelow,
): Steps<boolean> {
  for (const parent of identities.parents.keys()) {
    yield
    levelOf(parent.id, parent)
    for (const { plan } of countsBelow(parent)) {
      const level = { parent: parent.id, plan: rules.plans.get(plan) }
      if (rules.levels.faultOf(level, levelOf) !== undefined) return true
    }
  }
  return false
}

/**
 * Checks by the rules after the change who stands below whom: those that are put, and all others with a parent where
 * somebody's ancestor is put, or `areNew` rules apply.
 */
export function* checkLevels(
  { subjects }: ChangeSet,
  identities: PackedIdentities,
  { rules, areNew }: { readonly rules: SubjectRules; readonly areNew: boolean },
  faults: ProblemList,
): Steps<void> {
  const before = faults.problemCount
  const countsBelow = countsBeside(subjects, identities)
  let reachesOthers = areNew
  for (const [id, entity] of subjects) {
    const packed = identities.subjects.get(id)
    const children = packed === undefined ? 0 : countsBelow(packed).reduce((sum, { count }) => sum + count, 0)
    if (children > 0 && entity === undefined) {
      faults.add(pathOf(id), `is still above ${children} others; move or delete them in the same change`)
    }
    reachesOthers ||= children > 0
  }
  if (faults.problemCount > before) return
  const levelOf = levelsAfter(subjects, identities, rules)
  const check = (id: string) => {
    const level = subjects.has(id) ? levelOf(id) : packedLevel(identities.subjects.get(id), rules)
    const fault = level?.parent === undefined ? undefined : rules.levels.faultOf(level, levelOf)
    if (fault !== undefined) faults.add(`${pathOf(id)}.parent`, fault)
  }
  for (const id of subjects.keys()) {
    yield
    check(id)
  }
  if (!reachesOthers || !(yield* isAnybodyWrong(identities, rules, levelOf, countsBelow))) return
  for (const id of identities.subjects.keys()) {
    yield
    if (!subjects.has(id)) check(id)
  }
}

/** Deletes what of a bulk stands below something wrong or missing: less than is meant would limit it. */
export function leaveOutBelow(identities: PackedIdentities, rules: SubjectRules, faults: ProblemList): void {
  const levelOf = (id: string) => packedLevel(identities.subjects.get(id), rules)
  const countsBelow: CountsBelow = (parent) => identities.parents.get(parent) ?? []
  // What is left out takes those below it along, a level at a time.
  for (let level = 1; level <= levelsMax; level += 1) {
    if (!finish(isAnybodyWrong(identities, rules, levelOf, countsBelow))) return
    for (const packed of identities.subjects.values()) {
      const own = packed.parent && packedLevel(packed, rules)
      const fault = own && rules.levels.faultOf(own, levelOf)
      if (fault === undefined) continue
      faults.add(`${pathOf(packed.id)}.parent`, fault)
      for (const sha256 of keyList(packed)) identities.deleteKey(sha256)
      identities.deleteSubject(packed.id)
    }
  }
}
