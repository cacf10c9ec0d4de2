import { finish, type Steps } from '@weir/core/steps.ts'
import type { Entity, EntityChange, EntityKind, PolicyFault } from '../entities.ts'
import type { Policy } from '../policy.ts'
import { emptyPolicy } from '../reader/parse-policy.ts'
import { type ChangeSet, changeSet, editDefinitions } from './change-set.ts'
import { checkKeys, checkShapes, checkSubjects, Faults } from './check-identities.ts'
import { usesOfDeleted } from './check-uses.ts'
import {
  compileDefinitions,
  type DefinitionKind,
  type Definitions,
  inOrder,
  isDefinitionKind,
  noDefinitions,
} from './compile-definitions.ts'
import { type CompiledPolicy, compiledPolicy, createSubjectRules } from './compiled-policy.ts'
import { loadEntities } from './load-entities.ts'
import { keyList, type NewKey, PackedIdentities } from './packed-identities.ts'

export type LoadedState =
  /** `leftOut` lists subjects and keys that do not fit the definitions; everything else is in force. */
  | { readonly kind: 'loaded'; readonly policy: Policy; readonly leftOut: readonly PolicyFault[] }
  | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }

export type CheckedChange =
  /** `definitionsChange`: not only subjects and keys would change, so that `policy` would be another object. */
  | { readonly kind: 'fine'; readonly definitionsChange: boolean }
  | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }

export type AppliedChange =
  | { readonly kind: 'applied'; readonly policy: Policy; readonly definitionsChange: boolean }
  | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }

/** A change that is right, with everything that taking it over needs. */
interface Prepared {
  readonly kind: 'prepared'
  readonly change: ChangeSet
  readonly keys: ReadonlyMap<string, NewKey | undefined>
  readonly definitions: Definitions
  readonly compiled: CompiledPolicy
}

/** Limits, plans and routes: what subjects refer to. */
const subjectsReferTo: readonly DefinitionKind[] = ['limit', 'plan', 'route']

/**
 * A policy as its entities, which are changed one by one. Definitions (all but subjects and keys) are compiled when
 * one of them changes; a million subjects and keys lie packed and become objects when they are asked for.
 */
export class PolicyState {
  #definitions = noDefinitions
  #identities = new PackedIdentities()
  #compiled = this.#over(emptyPolicy, createSubjectRules(emptyPolicy))

  /**
   * The policy of all that is loaded and applied. The same object until a definition changes: its `subjects` and `keys`
   * show every later change of a subject or key immediately, with the plans and limits of this policy.
   */
  get policy(): Policy {
    return this.#compiled.policy
  }

  /** Entities of all kinds. */
  get size(): number {
    const definitions = Object.values(this.#definitions).reduce((sum, { size }) => sum + size, 0)
    return definitions + this.#identities.subjects.size + this.#identities.keys.size
  }

  /** Forgets everything before and takes these; with problems it stays as it was. */
  load(entities: Iterable<Entity>): LoadedState {
    const loaded = loadEntities(entities, emptyPolicy)
    if (loaded.kind === 'problems') return loaded
    this.#definitions = loaded.definitions
    this.#identities = loaded.identities
    this.#compiled = this.#over(loaded.policy, loaded.rules)
    return { kind: 'loaded', policy: this.policy, leftOut: loaded.leftOut }
  }

  /** What `apply` would answer. Changes nothing. */
  check(changes: readonly EntityChange[]): CheckedChange {
    return finish(this.checkSteps(changes))
  }

  /** As `check`, in steps. Only right if nothing is applied or loaded before the last one. */
  *checkSteps(changes: readonly EntityChange[]): Steps<CheckedChange> {
    const prepared = yield* this.#prepare(changeSet(changes))
    if (prepared.kind === 'problems') return prepared
    return { kind: 'fine', definitionsChange: prepared.compiled !== this.#compiled }
  }

  /** Applies the changes atomically: all of them, or none. */
  apply(changes: readonly EntityChange[]): AppliedChange {
    const prepared = finish(this.#prepare(changeSet(changes)))
    if (prepared.kind === 'problems') return prepared
    const definitionsChange = prepared.compiled !== this.#compiled
    this.#takeOver(prepared)
    return { kind: 'applied', policy: this.policy, definitionsChange }
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
    for (const name of this.#namesOf(kind)) {
      const entity = this.get(kind, name)
      if (entity !== undefined) yield entity
    }
  }

  /** At most `limit` of them, by name, from the first after `after`. */
  page(kind: EntityKind, after: string, limit: number): readonly Entity[] {
    const names = firstNames(this.#namesOf(kind), after, limit)
    return names.map((name) => this.get(kind, name)).filter((entity) => entity !== undefined)
  }

  count(kind: EntityKind): number {
    if (isDefinitionKind(kind)) return this.#definitions[kind].size
    return kind === 'subject' ? this.#identities.subjects.size : this.#identities.keys.size
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

  #namesOf(kind: EntityKind): Iterable<string> {
    if (isDefinitionKind(kind)) return this.#definitions[kind].keys()
    return kind === 'subject' ? this.#identities.subjects.keys() : this.#identities.keys.keys()
  }

  #over(definitions: Policy, rules: CompiledPolicy['subjects']): CompiledPolicy {
    return compiledPolicy(definitions, rules, () => this.#identities)
  }

  *#prepare(
    change: ChangeSet,
  ): Steps<Prepared | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }> {
    const { definitions, edited } = editDefinitions(this.#definitions, change.definitions)
    const faults = new Faults()
    for (const { path, message } of usesOfDeleted(this.#definitions, definitions)) faults.add(path, message)
    if (faults.list.length > 0) return { kind: 'problems', problems: faults.list }
    let compiled = this.#compiled
    if (edited.size > 0) {
      const read = compileDefinitions(definitions, this.#compiled.policy, edited)
      if (read.kind === 'problems') return read
      const refers = subjectsReferTo.some((kind) => edited.has(kind))
      const rules = refers ? createSubjectRules(read.policy) : this.#compiled.subjects
      compiled = this.#over(read.policy, rules)
      if (refers) checkShapes(change, this.#identities, { rules, before: this.#compiled.subjects }, faults)
    }
    yield* checkSubjects(change, this.#identities, compiled.subjects, faults)
    const keys = yield* checkKeys(change, this.#identities, faults)
    if (faults.list.length > 0) return { kind: 'problems', problems: faults.list }
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
