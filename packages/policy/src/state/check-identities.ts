import type { Steps } from '@weir/core/steps.ts'
import type { Entity, EntityChange, JsonValue, PolicyFault } from '../entities.ts'
import {
  nameRule,
  parseName,
  parseSha256,
  parseSubjectId,
  parseTimeMs,
  subjectRule,
  timeRule,
} from '../policy-values.ts'
import { type ProblemList, pathBelow } from '../reader/policy-reader.ts'
import { defaultKeyId, keysPerSubjectMax } from '../reader/read-keys.ts'
import type { SubjectRules } from './live-policy.ts'
import { keyIdOf, keyList, type NewKey, type PackedIdentities, type Shape } from './packed-identities.ts'

/** Changes sorted by what they touch. */
export type ChangeSet = Readonly<ReturnType<typeof changeSet>>

/** Sorts the changes; of several for one entity the last. */
export function changeSet(changes: readonly EntityChange[]) {
  const definitions = new Map<string, EntityChange>()
  const subjects = new Map<string, Entity | undefined>()
  const keys = new Map<string, Entity | undefined>()
  for (const change of changes) {
    if (change.kind === 'subject') subjects.set(change.name, change.entity)
    else if (change.kind === 'key') keys.set(change.name, change.entity)
    else definitions.set(`${change.kind}/${change.name}`, change)
  }
  return { definitions, subjects, keys }
}

/** Below the name of a subject the paths of its settings. */
const below = (subject: string, path: string) => {
  const start = pathBelow('subjects', subject)
  return path === '' || path.startsWith('[') ? `${start}${path}` : `${start}.${path}`
}

function addBelow(subject: string, problems: readonly PolicyFault[], faults: ProblemList, note = ''): void {
  for (const { path, message } of problems) faults.add(below(subject, path), `${message}${note}`)
}

/** Checks the subjects that are put by the rules after the change, one at a step. */
export function* checkSubjects(
  { subjects, keys }: ChangeSet,
  identities: PackedIdentities,
  rules: SubjectRules,
  faults: ProblemList,
): Steps<void> {
  for (const [id, subject] of subjects) {
    yield
    if (subject === undefined) {
      const packed = identities.subjects.get(id)
      const left = packed === undefined ? [] : keyList(packed).filter((sha256) => !keys.has(sha256))
      if (left.length === 0) continue
      const what = left.length === 1 ? 'a key' : `${left.length} keys`
      faults.add(below(id, ''), `has ${what} still; they must go in the same change`)
    } else if (parseSubjectId(id) === undefined) {
      faults.add(below(id, ''), `the id of a subject must be ${subjectRule}`)
    } else {
      addBelow(id, rules.read(subject.body).problems, faults)
    }
  }
}

/** Checks the unchanged subjects by new rules: no definition may take away what they refer to. */
export function checkShapes(
  { subjects }: ChangeSet,
  identities: PackedIdentities,
  { rules, before }: { readonly rules: SubjectRules; readonly before: SubjectRules },
  faults: ProblemList,
): void {
  const leaving = new Map<Shape, number>()
  for (const id of subjects.keys()) {
    const shape = identities.subjects.get(id)?.shape
    if (shape !== undefined) leaving.set(shape, (leaving.get(shape) ?? 0) + 1)
  }
  const wrong = new Map<Shape, number>()
  for (const shape of identities.shapes.values()) {
    const count = shape.count - (leaving.get(shape) ?? 0)
    if (count > 0 && rules.of(shape).problems.length > 0) wrong.set(shape, count)
  }
  if (wrong.size === 0) return
  const examples = examplesOf(identities, wrong, (id) => subjects.has(id))
  const byPlan = new Map<string, { count: number; example: string }>()
  for (const [shape, count] of wrong) {
    const example = examples.get(shape) ?? ''
    const plan = before.of(shape).settings?.plan.name
    if (plan !== undefined && rules.read({ plan }).problems.length > 0) {
      const known = byPlan.get(plan)
      byPlan.set(plan, { count: count + (known?.count ?? 0), example: known?.example ?? example })
      continue
    }
    const others = count === 1 ? '' : ` (and for ${count - 1} other subjects)`
    addBelow(example, rules.of(shape).problems, faults, others)
  }
  for (const [plan, { count, example }] of byPlan) {
    const who = count === 1 ? `the subject ${example}` : `${count} subjects, such as ${example}`
    faults.add(pathBelow('plans', plan), `is still the plan of ${who}`)
  }
}

/** A subject of each shape that does not change itself. */
function examplesOf(
  identities: PackedIdentities,
  shapes: ReadonlyMap<Shape, number>,
  changes: (id: string) => boolean,
) {
  const examples = new Map<Shape, string>()
  for (const { id, shape } of identities.subjects.values()) {
    if (shape === undefined || !shapes.has(shape) || examples.has(shape) || changes(id)) continue
    examples.set(shape, id)
    if (examples.size === shapes.size) break
  }
  return examples
}

/** Reads the keys that are put, one at a step; wrong ones are left out and reported. */
export function* checkKeys(
  change: ChangeSet,
  identities: PackedIdentities,
  { rules, areNew }: { readonly rules: SubjectRules; readonly areNew: boolean },
  faults: ProblemList,
): Steps<ReadonlyMap<string, NewKey | undefined>> {
  const settingsOf = (subject: string) => {
    const body = change.subjects.get(subject)?.body
    const shape = identities.subjects.get(subject)?.shape
    return body === undefined ? shape && rules.of(shape).settings : rules.read(body).settings
  }
  const checkLimits = (sha256: string, subject: string, limits: JsonValue) => {
    const owner = settingsOf(subject)
    const problems = owner === undefined ? [] : rules.readOfKey(limits, owner).problems
    for (const { path, message } of problems) faults.add(`${keyPath(sha256)}.limits.${path}`, message)
  }
  const read = new Map<string, NewKey | undefined>()
  const ids = new Map<string, string>()
  const added = new Map<string, number>()
  for (const [sha256, entity] of change.keys) {
    yield
    const key = entity === undefined ? undefined : readKey(sha256, entity, faults)
    if (entity !== undefined && key === undefined) continue
    read.set(sha256, key)
    if (key === undefined) continue
    const path = keyPath(sha256)
    const owner = change.subjects.has(key.subject)
      ? change.subjects.get(key.subject)
      : identities.subjects.get(key.subject)
    if (owner === undefined) faults.add(path, `there is no subject ${JSON.stringify(key.subject)}`)
    const holder = ids.get(key.id) ?? identities.keyIds.get(key.id)
    const isTaken =
      holder !== undefined && holder !== sha256 && (ids.has(key.id) || !isReleased(holder, key.id, change, identities))
    if (isTaken) faults.add(path, `another key has the id ${key.id} already`)
    ids.set(key.id, sha256)
    if (key.limits !== undefined) checkLimits(sha256, key.subject, key.limits)
    added.set(key.subject, (added.get(key.subject) ?? 0) + 1)
  }
  for (const sha256 of areNew ? identities.keyLimits.keys() : keysOf(change.subjects.keys(), identities)) {
    yield
    const limits = identities.keyLimits.get(sha256)
    const { id = '' } = identities.keys.get(sha256)?.subject ?? {}
    const owner = limits === undefined || change.keys.has(sha256) ? undefined : settingsOf(id)
    if (limits === undefined || owner === undefined || rules.ofKey(limits, owner) !== undefined) continue
    checkLimits(sha256, id, JSON.parse(limits))
  }
  for (const [subject, count] of added) {
    const packed = identities.subjects.get(subject)
    const stay = packed === undefined ? 0 : keyList(packed).filter((sha256) => !change.keys.has(sha256)).length
    if (stay + count <= keysPerSubjectMax) continue
    faults.add(below(subject, ''), `would have ${stay + count} keys; a subject has at most ${keysPerSubjectMax}`)
  }
  return read
}

function* keysOf(subjects: Iterable<string>, identities: PackedIdentities): Iterable<string> {
  for (const id of subjects) {
    const packed = identities.subjects.get(id)
    if (packed !== undefined) yield* keyList(packed)
  }
}

/** Returns whether the change releases an id: it deletes the key that has it, or gives that key another. */
function isReleased(holder: string, id: string, { keys }: ChangeSet, identities: PackedIdentities): boolean {
  if (!keys.has(holder)) return false
  const next = keys.get(holder)
  const packed = identities.keys.get(holder)
  const nextId = next?.body.id ?? defaultKeyId(holder)
  return next === undefined || packed === undefined || (nextId !== id && keyIdOf(holder, packed) === id)
}

/** The path shows no more of the hash than the key's id would: a client may have sent the key itself by mistake. */
const keyPath = (sha256: string) => (parseSha256(sha256) === sha256 ? pathBelow('keys', defaultKeyId(sha256)) : 'keys')

const keyMembers = ['subject', 'id', 'expires', 'limits']

/** A key of its entity; undefined, and a fault, when it is none. */
function readKey(sha256: string, { origin, body, issue }: Entity, faults: ProblemList): NewKey | undefined {
  const wrong = (part: string, message: string) => faults.add(`${keyPath(sha256)}${part}`, message)
  if (parseSha256(sha256) !== sha256) {
    return wrong('', 'a key is identified by its SHA-256 as 64 lower-case hex digits (never by the key itself)')
  }
  for (const name in body) {
    if (!keyMembers.includes(name)) return wrong('', `${JSON.stringify(name.slice(0, 40))} is not a setting of a key`)
  }
  const { subject, id = defaultKeyId(sha256), expires, limits } = body
  if (typeof subject !== 'string') return wrong('', 'needs `subject`')
  if (typeof id !== 'string' || parseName(id) === undefined) return wrong('.id', `must be ${nameRule}`)
  if (expires === undefined) return { subject, id, expiresAtMs: undefined, origin, issue, limits }
  const expiresAtMs = typeof expires === 'string' ? parseTimeMs(expires) : undefined
  if (expiresAtMs === undefined) return wrong('.expires', `must be ${timeRule}`)
  return { subject, id, expiresAtMs, origin, issue, limits }
}

/** Takes a subject or key of a bulk in any order, if it can be one; whether they fit is known when all are there. */
export function loadIdentity(identities: PackedIdentities, entity: Entity, faults: ProblemList): void {
  const { kind, name, origin, body } = entity
  if (kind === 'key') {
    const key = readKey(name, entity, faults)
    if (key !== undefined) identities.putKey(name, key)
  } else if (parseSubjectId(name) !== undefined) identities.putSubject(name, origin, body)
  else faults.add(below(name, ''), `the id of a subject must be ${subjectRule}`)
}

/** Deletes what of a bulk does not fit: one subject of a million must not keep the others from being served. */
export function leaveOutWrong(identities: PackedIdentities, rules: SubjectRules, faults: ProblemList): void {
  for (const packed of identities.subjects.values()) {
    const { id, shape } = packed
    // Nobody says more of it than that it is above another: those below it are told so.
    const wrong = shape === undefined ? noSuchSubject : rules.of(shape).problems
    if (shape !== undefined || packed.keys !== undefined) addBelow(id, wrong, faults)
    const isOut = wrong.length > 0
    const surplus = keyList(packed).slice(isOut ? 0 : keysPerSubjectMax)
    for (const sha256 of surplus) identities.deleteKey(sha256)
    if (!isOut && surplus.length > 0)
      faults.add(below(id, ''), `has ${surplus.length} keys more than the ${keysPerSubjectMax} a subject may have`)
    if (isOut) identities.deleteSubject(id)
  }
  // Of two keys with one id, `keyIds` has the one that came last.
  if (identities.keyIds.size === identities.keys.size) return
  for (const [sha256, key] of identities.keys) {
    const id = keyIdOf(sha256, key)
    const holder = identities.keyIds.get(id)
    if (holder === undefined) identities.keyIds.set(id, sha256)
    if (holder === undefined || holder === sha256) continue
    faults.add(pathBelow('keys', id), 'another key has this id too')
    identities.deleteKey(sha256)
  }
}

const noSuchSubject: readonly PolicyFault[] = [{ path: '', message: 'there is no such subject, but it has keys' }]
