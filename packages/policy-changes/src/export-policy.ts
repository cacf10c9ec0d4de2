import { ancestorsOf } from '@weir/policy/ancestors.ts'
import { type Entity, type EntityKind, isJsonObject, type JsonObject, sectionOf } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type PolicySource, policyLines, textOrder } from '@weir/policy/state/policy-text.ts'

/** Returns an entity as the file has it: with a route's match, and with a subject's keys. */
function fileBody(source: PolicySource, { kind, name, body }: Entity): JsonObject {
  if (kind === 'route') return { match: name, ...body }
  if (kind !== 'subject') return body
  // In one order, however they came: the same text for the same policy.
  const keys = source
    .keysOf(name)
    .toSorted()
    .flatMap((sha256) => {
      const { subject: _, ...rest } = source.get('key', sha256)?.body ?? {}
      return isJsonObject(rest) ? [{ sha256, ...rest }] : []
    })
  return keys.length === 0 ? body : { ...body, keys }
}

/** Returns the brackets around the entities of a kind, and whether each entity has a name within them. */
function bracketsOf(kind: EntityKind): { readonly open: string; readonly close: string; readonly isNamed: boolean } {
  if (kind === 'route') return { open: '[', close: ']', isNamed: false }
  if (kind === 'identity') return { open: '', close: '', isNamed: false }
  return { open: '{', close: '}', isNamed: true }
}

function* jsonPieces(source: PolicySource): Iterable<string> {
  yield '{"version":1'
  for (const kind of textOrder) {
    const { open, close, isNamed } = bracketsOf(kind)
    let isFirst = true
    for (const entity of source.list(kind)) {
      const before = isFirst ? `,"${sectionOf[kind]}":${open}` : ','
      yield `${before}${isNamed ? `${JSON.stringify(entity.name)}:` : ''}${JSON.stringify(fileBody(source, entity))}`
      isFirst = false
    }
    if (!isFirst) yield close
  }
  yield '}\n'
}

const hint =
  '# sha256 of keys is left out without the scope keys, sha256 of tokens without admin: this file cannot be applied.\n'

function* yamlPieces(source: PolicySource, isWhole: boolean): Iterable<string> {
  if (!isWhole) yield hint
  for (const line of policyLines(source)) yield `${line}\n`
}

/** Which hashes a caller may see: the hash of a secret that is not random is as good as the secret. */
export interface ShownHashes {
  readonly ofKeys: boolean
  readonly ofTokens: boolean
}

/** Returns a subject with its keys, but without their hashes. */
function withBareKeys(state: PolicyState, subject: Entity): Entity {
  const keys = state.keysOf(subject.name).map((sha256) => {
    const { id = null, expires } = state.get('key', sha256)?.body ?? {}
    return expires === undefined ? { id } : { id, expires }
  })
  // By their ids: the order of hashes says something of them.
  const inOrder = keys.toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1))
  return keys.length === 0 ? subject : { ...subject, body: { ...subject.body, keys: inOrder } }
}

/**
 * The state as the caller may see it: of all subjects only the one that is named with those above it, and every key and
 * token, but without the hashes that may not be seen. Such a file is rejected where it is applied, since each of them
 * needs one: so it cannot take keys and tokens away.
 */
function shownOf(state: PolicyState, subject: string | undefined, { ofKeys, ofTokens }: ShownHashes): PolicySource {
  const shown = (entity: Entity): Entity => {
    const { sha256: _, ...bare } = entity.body
    if (entity.kind === 'token' && !ofTokens) return { ...entity, body: bare }
    return entity.kind === 'subject' && !ofKeys ? withBareKeys(state, entity) : entity
  }
  return {
    get: (kind, name) => state.get(kind, name),
    keysOf: (name) => (ofKeys ? state.keysOf(name) : []),
    *list(kind) {
      const one = kind === 'subject' && subject !== undefined
      const above = subject === undefined ? undefined : state.policy.subjects.get(subject)
      const named = [subject, ...ancestorsOf(above ?? {}).map(({ id }) => id)]
      const entities = one ? named.map((id = '') => state.get(kind, id)) : state.list(kind)
      for (const entity of entities) if (entity !== undefined) yield shown(entity)
    },
  }
}

/**
 * Yields the policy as a policy file, piece by piece, so that a million subjects need no second copy; a change that
 * comes while it is read may be in it. With `subject` it has of all subjects only this one and those above it. Hashes
 * that the caller may not see are left out.
 */
export function exportPolicy(
  state: PolicyState,
  as: 'json' | 'yaml',
  { subject, hashes }: { readonly subject: string | undefined; readonly hashes: ShownHashes },
): Iterable<string> {
  const isWhole = hashes.ofKeys && hashes.ofTokens
  const source = isWhole && subject === undefined ? state : shownOf(state, subject, hashes)
  return as === 'json' ? jsonPieces(source) : yamlPieces(source, isWhole)
}
