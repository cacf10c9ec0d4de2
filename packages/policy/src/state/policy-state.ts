import { finish, type Steps } from '@weir/core/steps.ts'
import { type Entity, type EntityChange, type EntityKind, entityKinds, type PolicyFault } from '../entities.ts'
import type { Policy } from '../policy.ts'
import { emptyPolicy } from '../reader/parse-policy.ts'
import { ProblemList } from '../reader/policy-reader.ts'
import {
  type ChangeSet,
  changeSet,
  checkKeys,
  checkShapes,
  checkSubjects,
  leaveOutWrong,
  loadIdentity,
} from './check-identities.ts'
import { checkLevels, leaveOutBelow } from './check-levels.ts'
import {
  compileDefinitions,
  type DefinitionKind,
  type Definitions,
  editDefinitions,
  inOrder,
  isDefinitionKind,
  newDefinitions,
  usesOfDeleted,
} from './definitions.ts'
import { type CompiledPolicy, compiledPolicy, type FindSubject, findEdited, SubjectRules } from './live-policy.ts'
import { bodyOfShape, keyList, type NewKey, PackedIdentities } from './packed-identities.ts'

interface Problems {
  readonly kind: 'problems'
  readonly problems: readonly PolicyFault[]
}

/** A change that is right, with everything that taking it over needs. */
interface Prepared {
  readonly kind: 'prepared'
  readonly change: ChangeSet
  readonly keys: ReadonlyMap<string, NewKey | undefined>
  readonly definitions: Definitions
  readonly compiled: CompiledPolicy
}

/** What subjects refer to. */
const subjectsReferTo: readonly DefinitionKind[] = ['rateCard', 'limit', 'plan', 'route', 'price']

/**
 * A policy as its entities, which are changed one by one. Definitions (all but subjects and keys) are compiled when
 * one of them changes; a million subjects and keys lie packed and become objects when they are asked for.
 */
export class PolicyState {
  #definitions: Definitions = newDefinitions()
  #identities = new PackedIdentities()
  #compiled = this.#over(emptyPolicy, new SubjectRules(emptyPolicy))

  /**
   * The policy of all that is loaded and applied. The same object until a definition changes: its `subjects` and `keys`
   * show every later change of a subject or key immediately, with the plans and limits of this policy.
   */
  get policy(): Policy {
    return this.#compiled.policy
  }

  /** Entities of all kinds. */
  get size(): number {
    return entityKinds.reduce((sum, kind) => sum + this.count(kind), 0)
  }

  /**
   * Forgets everything before and takes these entities in any order; of several with one name the last. Definitions
   * must be right as a whole, or it stays as it was; subjects and keys that do not fit them are left out.
   */
  load(
    entities: Iterable<Entity>,
  ): { readonly kind: 'loaded'; readonly policy: Policy; readonly leftOut: readonly PolicyFault[] } | Problems {
    const definitions = newDefinitions()
    const identities = new PackedIdentities()
    const faults = new ProblemList()
    for (const entity of entities) {
      if (isDefinitionKind(entity.kind)) definitions[entity.kind].set(entity.name, entity)
      else loadIdentity(identities, entity, faults)
    }
    const compiled = compileDefinitions(definitions, emptyPolicy)
    if (compiled.kind === 'problems') return compiled
    const rules = new SubjectRules(compiled.policy)
    leaveOutWrong(identities, rules, faults)
    leaveOutBelow(identities, rules, faults)
    this.#definitions = definitions
    this.#identities = identities
    this.#compiled = this.#over(compiled.policy, rules)
    return { kind: 'loaded', policy: this.policy, leftOut: faults.faults }
  }

  /** Says whether `apply` would apply the changes, in steps. Only right if nothing changes before the last one. */
  *checkSteps(changes: readonly EntityChange[]): Steps<{ readonly kind: 'fine' } | Problems> {
    const prepared = yield* this.#prepare(changeSet(changes))
    return prepared.kind === 'problems' ? prepared : { kind: 'fine' }
  }

  /**
   * Gives the policy as it would be after the changes, in steps; this state stays as it is. `policy` has the subjects
   * as they are now, under its own definitions; `subjectOf` has them as the changes make them.
   */
  *previewSteps(
    changes: readonly EntityChange[],
  ): Steps<{ readonly kind: 'preview'; readonly policy: Policy; readonly subjectOf: FindSubject } | Problems> {
    const prepared = yield* this.#prepare(changeSet(changes))
    if (prepared.kind === 'problems') return prepared
    const { policy, rules } = prepared.compiled
    return { kind: 'preview', policy, subjectOf: findEdited(policy.subjects, prepared.change.subjects, rules) }
  }

  /** Applies the changes atomically: all of them, or none. */
  apply(changes: readonly EntityChange[]): { readonly kind: 'applied'; readonly policy: Policy } | Problems {
    const prepared = finish(this.#prepare(changeSet(changes)))
    if (prepared.kind === 'problems') return prepared
    this.#takeOver(prepared)
    return { kind: 'applied', policy: this.policy }
  }

  /** Whether a plan or a subject has a `budget`, which does nothing since 0.11. */
  get hasFormerBudgets(): boolean {
    const bodies = [...this.list('plan')].map(({ body }) => body)
    const shapes = [...this.#identities.shapes.values()].filter(({ text }) => text.includes('"budget":'))
    return [...bodies, ...shapes.map(bodyOfShape)].some((body) => Object.hasOwn(body, 'budget'))
  }

  /** Whether any subject has a parent. */
  get hasTrees(): boolean {
    return this.#identities.parents.size > 0
  }

  get(kind: EntityKind, name: string): Entity | undefined {
    if (isDefinitionKind(kind)) return this.#definitions[kind].get(name)
    return kind === 'subject' ? this.#identities.subjectEntity(name) : this.#identities.keyEntity(name)
  }

  /**
   * Definitions in their order, subjects and keys as they were added; made one by one, so that a million need no
   * memory.
   */
  *list(kind: EntityKind): Iterable<Entity> {
    if (isDefinitionKind(kind)) {
      yield* inOrder(this.#definitions[kind].values())
      return
    }
    for (const name of this.#byName(kind).keys()) {
      const entity = this.get(kind, name)
      if (entity !== undefined) yield entity
    }
  }

  /** At most `limit` of them, by name, from the first after `after`. */
  page(kind: EntityKind, after: string, limit: number): readonly Entity[] {
    const names = firstNames(this.#byName(kind).keys(), after, limit)
    return names.map((name) => this.get(kind, name)).filter((entity) => entity !== undefined)
  }

  count(kind: EntityKind): number {
    return this.#byName(kind).size
  }

  /** SHA-256 of the subject's keys. */
  keysOf(subject: string): readonly string[] {
    const packed = this.#identities.subjects.get(subject)
    return packed === undefined ? [] : keyList(packed)
  }

  /** SHA-256 of the key with this id. */
  keyOfId(id: string): string | undefined {
    return this.#identities.keyIds.get(id)
  }

  #byName(kind: EntityKind): ReadonlyMap<string, unknown> {
    if (isDefinitionKind(kind)) return this.#definitions[kind]
    return kind === 'subject' ? this.#identities.subjects : this.#identities.keys
  }

  #over(definitions: Policy, rules: SubjectRules): CompiledPolicy {
    return compiledPolicy(definitions, rules, () => this.#identities)
  }

  *#prepare(change: ChangeSet): Steps<Prepared | Problems> {
    const { definitions, edited } = editDefinitions(this.#definitions, change.definitions.values())
    const faults = new ProblemList()
    for (const { path, message } of usesOfDeleted(this.#definitions, definitions)) faults.add(path, message)
    if (faults.problemCount > 0) return { kind: 'problems', problems: faults.faults }
    let compiled = this.#compiled
    let areNew = false
    if (edited.size > 0) {
      const read = compileDefinitions(definitions, this.#compiled.policy, edited)
      if (read.kind === 'problems') return read
      const refers = subjectsReferTo.some((kind) => edited.has(kind))
      areNew = refers
      const rules = refers ? new SubjectRules(read.policy) : this.#compiled.rules
      compiled = this.#over(read.policy, rules)
      if (refers) checkShapes(change, this.#identities, { rules, before: this.#compiled.rules }, faults)
    }
    const { rules } = compiled
    yield* checkSubjects(change, this.#identities, rules, faults)
    yield* checkLevels(change, this.#identities, { rules, areNew }, faults)
    const keys = yield* checkKeys(change, this.#identities, { rules, areNew }, faults)
    if (faults.problemCount > 0) return { kind: 'problems', problems: faults.faults }
    return { kind: 'prepared', change, keys, definitions, compiled }
  }

  /** Nothing here can fail: a change is whole. Keys go before their subjects and come after them. */
  #takeOver({ change, keys, definitions, compiled }: Prepared): void {
    const identities = this.#identities
    this.#definitions = definitions
    this.#compiled = compiled
    for (const [id, subject] of change.subjects) {
      if (subject !== undefined) identities.putSubject(id, subject.origin, subject.body)
    }
    for (const [sha256, key] of keys) if (key === undefined) identities.deleteKey(sha256)
    for (const [sha256, key] of keys) if (key !== undefined) identities.putKey(sha256, key)
    for (const [id, subject] of change.subjects) if (subject === undefined) identities.deleteSubject(id)
  }
}

/** The first names after `after`, by name, in one pass and without sorting a million of them. */
function firstNames(names: Iterable<string>, after: string, limit: number): readonly string[] {
  const found: string[] = []
  for (const name of names) {
    if (name <= after || (found.length >= limit && name > (found.at(-1) ?? ''))) continue
    let [low, high] = [0, found.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((found[middle] ?? '') < name) low = middle + 1
      else high = middle
    }
    found.splice(low, 0, name)
    if (found.length > limit) found.pop()
  }
  return found
}
