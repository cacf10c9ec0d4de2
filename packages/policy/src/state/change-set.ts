import { canonicalJson, type Entity, type EntityChange, type EntityOrigin, type JsonObject } from '../entities.ts'
import { type DefinitionKind, type Definitions, isDefinitionKind } from './compile-definitions.ts'

/** Changes sorted by what they touch; of several for one entity the last. */
export interface ChangeSet {
  readonly definitions: readonly EntityChange[]
  readonly subjects: ReadonlyMap<string, NewSubject | undefined>
  readonly keys: ReadonlyMap<string, Entity | undefined>
}

export interface NewSubject {
  readonly origin: EntityOrigin
  readonly body: JsonObject
}

export function changeSet(changes: readonly EntityChange[]): ChangeSet {
  const definitions = new Map<string, EntityChange>()
  const subjects = new Map<string, NewSubject | undefined>()
  const keys = new Map<string, Entity | undefined>()
  for (const change of changes) {
    if (change.kind === 'subject') subjects.set(change.name, change.entity)
    else if (change.kind === 'key') keys.set(change.name, change.entity)
    else definitions.set(`${change.kind}/${change.name}`, change)
  }
  return { definitions: [...definitions.values()], subjects, keys }
}

/** What definitions become, and which kinds of them mean something else then. Kinds without a change keep their map. */
export interface EditedDefinitions {
  readonly definitions: Definitions
  readonly edited: ReadonlySet<DefinitionKind>
}

export function editDefinitions(before: Definitions, changes: readonly EntityChange[]): EditedDefinitions {
  const edited = new Set<DefinitionKind>()
  if (changes.length === 0) return { definitions: before, edited }
  const copies: Partial<Record<DefinitionKind, Map<string, Entity>>> = {}
  for (const { kind, name, entity } of changes) {
    if (!isDefinitionKind(kind)) continue
    const known = before[kind].get(name)
    copies[kind] ??= new Map(before[kind])
    if (entity === undefined) copies[kind].delete(name)
    else copies[kind].set(name, entity)
    if (!meansTheSame(known, entity)) edited.add(kind)
  }
  return { definitions: { ...before, ...copies }, edited }
}

function meansTheSame(before: Entity | undefined, after: Entity | undefined): boolean {
  if (before === undefined || after === undefined) return before === after
  return before.position === after.position && canonicalJson(before.body) === canonicalJson(after.body)
}
