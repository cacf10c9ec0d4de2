import type { Entity, PolicyFault } from '../entities.ts'
import type { Policy } from '../policy.ts'
import { parseSubjectId, subjectRule } from '../policy-values.ts'
import { pathBelow } from '../reader/policy-reader.ts'
import { keysPerSubjectMax } from '../reader/read-keys.ts'
import { Faults, readKey } from './check-identities.ts'
import { compileDefinitions, type DefinitionKind, type Definitions, isDefinitionKind } from './compile-definitions.ts'
import { createSubjectRules, type SubjectRules } from './compiled-policy.ts'
import { keyIdOf, keyList, PackedIdentities } from './packed-identities.ts'

export type LoadedEntities =
  | {
      readonly kind: 'loaded'
      readonly definitions: Definitions
      readonly identities: PackedIdentities
      readonly policy: Policy
      readonly rules: SubjectRules
      readonly leftOut: readonly PolicyFault[]
    }
  | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }

/**
 * Takes entities in any order; of several with one name the last. Definitions must be right as a whole. Subjects and
 * keys that are not are left out and reported: one of a million must not keep the others from being served.
 */
export function loadEntities(entities: Iterable<Entity>, before: Policy): LoadedEntities {
  const definitions = emptyDefinitions()
  const identities = new PackedIdentities()
  const faults = new Faults()
  for (const entity of entities) {
    if (isDefinitionKind(entity.kind)) definitions[entity.kind].set(entity.name, entity)
    else if (entity.kind === 'subject') loadSubject(identities, entity, faults)
    else loadKey(identities, entity, faults)
  }
  const compiled = compileDefinitions(definitions, before)
  if (compiled.kind === 'problems') return compiled
  const rules = createSubjectRules(compiled.policy)
  leaveOutWrong(identities, rules, faults)
  return { kind: 'loaded', definitions, identities, policy: compiled.policy, rules, leftOut: faults.list }
}

function emptyDefinitions(): Record<DefinitionKind, Map<string, Entity>> {
  const [limit, plan, upstream, route] = [new Map(), new Map(), new Map(), new Map()]
  const [endpoint, watch, identity, token] = [new Map(), new Map(), new Map(), new Map()]
  return { limit, plan, upstream, route, endpoint, watch, identity, token }
}

function loadSubject(identities: PackedIdentities, { name, origin, body }: Entity, faults: Faults): void {
  if (parseSubjectId(name) !== undefined) identities.putSubject(name, origin, body)
  else faults.add(pathBelow('subjects', name), `the id of a subject must be ${subjectRule}`)
}

function loadKey(identities: PackedIdentities, entity: Entity, faults: Faults): void {
  const key = readKey(entity.name, entity, faults)
  if (key !== undefined) identities.putKey(entity.name, key)
}

function leaveOutWrong(identities: PackedIdentities, rules: SubjectRules, faults: Faults): void {
  for (const packed of identities.subjects.values()) {
    const { id, shape } = packed
    const path = pathBelow('subjects', id)
    const wrong = shape === undefined ? [] : rules.faultsOf(shape)
    for (const { path: part, message } of wrong) faults.add(part === '' ? path : `${path}.${part}`, message)
    if (shape === undefined) faults.add(path, 'there is no such subject, but it has keys')
    const isOut = shape === undefined || wrong.length > 0
    const surplus = keyList(packed).slice(isOut ? 0 : keysPerSubjectMax)
    for (const sha256 of surplus) identities.deleteKey(sha256)
    if (!isOut && surplus.length > 0)
      faults.add(path, `has ${surplus.length} keys more than the ${keysPerSubjectMax} a subject may have`)
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
