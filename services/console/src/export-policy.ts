import { type Entity, type EntityKind, isJsonObject, type JsonObject, sectionOf } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type PolicySource, policyLines, textOrder } from '@weir/policy/state/policy-text.ts'

/** What the file has under the entity's name: a route's match and a subject's keys are part of it there. */
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

/** What encloses the entities of a kind, and whether they are named in it. */
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

function* yamlPieces(source: PolicySource): Iterable<string> {
  for (const line of policyLines(source)) yield `${line}\n`
}

/** The state with one subject alone. */
function onlyOf(state: PolicyState, subject: string): PolicySource {
  return {
    get: (kind, name) => state.get(kind, name),
    keysOf: (id) => state.keysOf(id),
    list(kind) {
      if (kind !== 'subject') return state.list(kind)
      const found = state.get(kind, subject)
      return found === undefined ? [] : [found]
    },
  }
}

/** Whose hashes a caller may see: of a secret that is not random they are as good as the secret. */
export interface ShownHashes {
  readonly ofKeys: boolean
  readonly ofTokens: boolean
}

/**
 * The state with every key and token, but without the hashes that may not be seen. Such a file is refused where it is
 * applied, since each of them needs one: so it cannot take keys and tokens away.
 */
function withoutHashes(source: PolicySource, { ofKeys, ofTokens }: ShownHashes): PolicySource {
  const withBareKeys = (subject: Entity): Entity => {
    const keys = source.keysOf(subject.name).flatMap((sha256) => {
      const { id = null, expires } = source.get('key', sha256)?.body ?? {}
      return [expires === undefined ? { id } : { id, expires }]
    })
    // By their ids: the order of hashes says something of them.
    const inOrder = keys.toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1))
    return keys.length === 0 ? subject : { ...subject, body: { ...subject.body, keys: inOrder } }
  }
  return {
    get: (kind, name) => source.get(kind, name),
    keysOf: (subject) => (ofKeys ? source.keysOf(subject) : []),
    *list(kind) {
      for (const entity of source.list(kind)) {
        const { sha256: _, ...bare } = entity.body
        if (kind === 'token' && !ofTokens) yield { ...entity, body: bare }
        else yield kind === 'subject' && !ofKeys ? withBareKeys(entity) : entity
      }
    },
  }
}

const hint =
  '# sha256 of keys is left out without the scope keys, sha256 of tokens without admin: this file cannot be applied.\n'

function* withHint(pieces: Iterable<string>): Iterable<string> {
  yield hint
  yield* pieces
}

/**
 * The policy as a file that says the same. Piece by piece, so that a million subjects need no second copy; a change
 * that comes while it is read may be in it. `subject`: of all subjects only this one. Hashes that may not be seen are
 * left out.
 */
export function exportPolicy(
  state: PolicyState,
  as: 'json' | 'yaml',
  { subject, hashes }: { readonly subject: string | undefined; readonly hashes: ShownHashes },
): Iterable<string> {
  const of = subject === undefined ? state : onlyOf(state, subject)
  const isWhole = hashes.ofKeys && hashes.ofTokens
  const source = isWhole ? of : withoutHashes(of, hashes)
  if (as === 'json') return jsonPieces(source)
  return isWhole ? yamlPieces(source) : withHint(yamlPieces(source))
}
