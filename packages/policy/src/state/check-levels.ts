import type { Steps } from '@weir/core/steps.ts'
import { type Level, levelsMax } from '../reader/level-rules.ts'
import { type ProblemList, pathBelow } from '../reader/policy-reader.ts'
import type { ChangeSet } from './check-identities.ts'
import type { SubjectRules } from './live-policy.ts'
import { keyList, type PackedIdentities, type PackedSubject } from './packed-identities.ts'

const pathOf = (id: string) => pathBelow('subjects', id)

const packedLevel = (packed: PackedSubject | undefined, rules: SubjectRules): Level | undefined =>
  packed?.shape && { parent: packed.parent?.id, plan: rules.of(packed.shape).settings?.plan }

/**
 * Checks by the rules after the change who stands below whom, one subject at a step: those that are put, and everybody
 * else with a parent where somebody's ancestor is put, or `areNew` rules apply.
 */
export function* checkLevels(
  { subjects }: ChangeSet,
  identities: PackedIdentities,
  { rules, areNew }: { readonly rules: SubjectRules; readonly areNew: boolean },
  faults: ProblemList,
): Steps<void> {
  const before = faults.problemCount
  const left = new Map(identities.parents)
  for (const id of subjects.keys()) {
    const parent = identities.subjects.get(id)?.parent
    if (parent !== undefined) left.set(parent, (left.get(parent) ?? 0) - 1)
  }
  let reachesOthers = areNew && identities.parents.size > 0
  for (const [id, entity] of subjects) {
    const packed = identities.subjects.get(id)
    const children = (packed && left.get(packed)) ?? 0
    if (children > 0 && entity === undefined) {
      faults.add(pathOf(id), `is still above ${children} others; move or delete them in the same change`)
    }
    reachesOthers ||= children > 0
  }
  if (faults.problemCount > before) return
  const known = new Map<string, Level | undefined>()
  const levelOf = (id: string): Level | undefined => {
    if (!subjects.has(id)) return packedLevel(identities.subjects.get(id), rules)
    if (!known.has(id)) {
      const body = subjects.get(id)?.body
      const parent = typeof body?.parent === 'string' ? body.parent : undefined
      known.set(id, body && { parent, plan: rules.read(body).settings?.plan })
    }
    return known.get(id)
  }
  const check = (id: string) => {
    const fault = rules.levels.faultOf(id, levelOf)
    if (fault !== undefined) faults.add(`${pathOf(id)}.parent`, fault)
  }
  for (const [id, entity] of subjects) {
    yield
    if (typeof entity?.body.parent === 'string') check(id)
  }
  for (const { id, parent } of reachesOthers ? identities.subjects.values() : []) {
    yield
    if (parent !== undefined && !subjects.has(id)) check(id)
  }
}

/** Deletes what of a bulk stands below something wrong or missing: less than is meant would limit it. */
export function leaveOutBelow(identities: PackedIdentities, rules: SubjectRules, faults: ProblemList): void {
  const levelOf = (id: string) => packedLevel(identities.subjects.get(id), rules)
  // What is left out takes those below it along, a level at a time.
  let isWrong = identities.parents.size > 0
  for (let level = 1; level <= levelsMax && isWrong; level += 1) {
    isWrong = false
    for (const packed of identities.subjects.values()) {
      const fault = packed.parent === undefined ? undefined : rules.levels.faultOf(packed.id, levelOf)
      if (fault === undefined) continue
      isWrong = true
      faults.add(`${pathOf(packed.id)}.parent`, fault)
      for (const sha256 of keyList(packed)) identities.deleteKey(sha256)
      identities.deleteSubject(packed.id)
    }
  }
}
