import { type Entity, type EntityKind, isJsonObject, type JsonObject, sectionOf } from '@weir/core/policy/entities.ts'
import type { PolicyState } from '@weir/core/policy/policy-state.ts'
import { type PolicySource, policyLines, textOrder } from '@weir/core/policy/policy-text.ts'

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

/**
 * The policy as a file that says the same. Piece by piece, so that a million subjects need no second copy; a change that
 * comes while it is read may be in it. `subject`: of all subjects only this one.
 */
export function exportPolicy(state: PolicyState, as: 'json' | 'yaml', subject?: string): Iterable<string> {
  const source = subject === undefined ? state : onlyOf(state, subject)
  return as === 'json' ? jsonPieces(source) : yamlPieces(source)
}
