import type { Steps } from '@weir/core/steps.ts'
import type { Entity, PolicyFault } from '../entities.ts'
import {
  nameRule,
  parseName,
  parseSha256,
  parseSubjectId,
  parseTimeMs,
  subjectRule,
  timeRule,
} from '../policy-values.ts'
import { pathBelow } from '../reader/policy-reader.ts'
import { defaultKeyId, keysPerSubjectMax } from '../reader/read-keys.ts'
import type { ChangeSet } from './change-set.ts'
import type { SubjectRules } from './compiled-policy.ts'
import { keyIdOf, keyList, type NewKey, type PackedIdentities, type Shape } from './packed-identities.ts'

/** What is found wrong, up to the number that anybody reads. */
export class Faults {
  readonly #kept: PolicyFault[] = []
  #left = 0

  get list(): readonly PolicyFault[] {
    if (this.#left === 0) return this.#kept
    return [...this.#kept, { path: '', message: `and ${this.#left} more problems` }]
  }

  add(path: string, message: string): undefined {
    if (this.#kept.length < faultsMax) this.#kept.push({ path, message })
    else this.#left += 1
  }
}

const faultsMax = 200

/** Below the name of a subject the paths of its settings. */
const below = (subject: string, path: string) => {
  const start = pathBelow('subjects', subject)
  return path === '' || path.startsWith('[') ? `${start}${path}` : `${start}.${path}`
}

/** The subjects that are put, by the rules that will hold; one at a step. */
export function* checkSubjects(
  { subjects, keys }: ChangeSet,
  identities: PackedIdentities,
  rules: SubjectRules,
  faults: Faults,
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
      const read = rules.read(subject.body)
      if (read.kind === 'settings') continue
      for (const { path, message } of read.problems) faults.add(below(id, path), message)
    }
  }
}

/** The subjects that stay as they are, by rules that are new: no definition may take away what they refer to. */
export function checkShapes(
  { subjects }: ChangeSet,
  identities: PackedIdentities,
  { rules, before }: { readonly rules: SubjectRules; readonly before: SubjectRules },
  faults: Faults,
): void {
  const leaving = new Map<Shape, number>()
  for (const id of subjects.keys()) {
    const shape = identities.subjects.get(id)?.shape
    if (shape !== undefined) leaving.set(shape, (leaving.get(shape) ?? 0) + 1)
  }
  const wrong = new Map<Shape, number>()
  for (const shape of identities.shapes.values()) {
    const count = shape.count - (leaving.get(shape) ?? 0)
    if (count > 0 && rules.faultsOf(shape).length > 0) wrong.set(shape, count)
  }
  if (wrong.size === 0) return
  const examples = examplesOf(identities, wrong, (id) => subjects.has(id))
  const byPlan = new Map<string, { count: number; example: string }>()
  for (const [shape, count] of wrong) {
    const example = examples.get(shape) ?? ''
    const plan = before.settingsOf(shape)?.plan.name
    if (plan !== undefined && rules.read({ plan }).kind === 'problems') {
      const known = byPlan.get(plan)
      byPlan.set(plan, { count: count + (known?.count ?? 0), example: known?.example ?? example })
      continue
    }
    const others = count === 1 ? '' : ` (as with ${count - 1} other subjects)`
    for (const { path, message } of rules.faultsOf(shape)) faults.add(below(example, path), `${message}${others}`)
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

/** The keys that are put, read; those that are wrong are left out beside their faults. One at a step. */
export function* checkKeys(
  change: ChangeSet,
  identities: PackedIdentities,
  faults: Faults,
): Steps<ReadonlyMap<string, NewKey | undefined>> {
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
      holder !== undefined && holder !== sha256 && (ids.has(key.id) || !isLetGo(holder, key.id, change, identities))
    if (isTaken) faults.add(path, `another key has the id ${key.id} already`)
    ids.set(key.id, sha256)
    added.set(key.subject, (added.get(key.subject) ?? 0) + 1)
  }
  for (const [subject, count] of added) {
    const packed = identities.subjects.get(subject)
    const stay = packed === undefined ? 0 : keyList(packed).filter((sha256) => !change.keys.has(sha256)).length
    if (stay + count <= keysPerSubjectMax) continue
    faults.add(below(subject, ''), `would have ${stay + count} keys; a subject has at most ${keysPerSubjectMax}`)
  }
  return read
}

/** Whether the change takes the id from the key that has it: by deleting it, or by giving it another. */
function isLetGo(holder: string, id: string, { keys }: ChangeSet, identities: PackedIdentities): boolean {
  if (!keys.has(holder)) return false
  const next = keys.get(holder)
  const packed = identities.keys.get(holder)
  const nextId = next?.body.id ?? defaultKeyId(holder)
  return next === undefined || packed === undefined || (nextId !== id && keyIdOf(holder, packed) === id)
}

/** The path shows no more of the hash than the key's id would: somebody may have sent the key itself by mistake. */
const keyPath = (sha256: string) => (parseSha256(sha256) === sha256 ? pathBelow('keys', defaultKeyId(sha256)) : 'keys')

const keyMembers = ['subject', 'id', 'expires']

/** A key of its entity; undefined, and a fault, when it is none. */
export function readKey(sha256: string, { origin, body }: Entity, faults: Faults): NewKey | undefined {
  const wrong = (part: string, message: string) => faults.add(`${keyPath(sha256)}${part}`, message)
  if (parseSha256(sha256) !== sha256) {
    return wrong('', 'a key is named by its SHA-256 in 64 lower-case hex digits (never by the key itself)')
  }
  for (const name in body) {
    if (!keyMembers.includes(name)) return wrong('', `${JSON.stringify(name.slice(0, 40))} is not a key of a key`)
  }
  const { subject, id = defaultKeyId(sha256), expires } = body
  if (typeof subject !== 'string') return wrong('', 'needs `subject`')
  if (typeof id !== 'string' || parseName(id) === undefined) return wrong('.id', `must be ${nameRule}`)
  if (expires === undefined) return { subject, id, expiresAtMs: undefined, origin }
  const expiresAtMs = typeof expires === 'string' ? parseTimeMs(expires) : undefined
  if (expiresAtMs === undefined) return wrong('.expires', `must be ${timeRule}`)
  return { subject, id, expiresAtMs, origin }
}
