import { type Entity, type EntityKind, isJsonObject, type JsonObject } from '@weir/core/policy/entities.ts'
import type { PolicyState } from '@weir/core/policy/policy-state.ts'
import { stringify } from 'yaml'

/** A policy file's sections of named parts, in the order of weir.yaml; routes, which are a list, stand after the limits. */
const sections: readonly (readonly [string, EntityKind])[] = [
  ['plans', 'plan'],
  ['limits', 'limit'],
  ['routes', 'route'],
  ['upstreams', 'upstream'],
  ['identity', 'identity'],
  ['tokens', 'token'],
  ['endpoints', 'endpoint'],
  ['subjects', 'subject'],
]

const yamlOptions = { collectionStyle: 'flow', lineWidth: 0, flowCollectionPadding: true } as const
const inline = (value: unknown) => stringify(value, yamlOptions).trimEnd()

/** What the file has under the entity's name: a route's match and a subject's keys are part of it there. */
function fileBody(state: PolicyState, { kind, name, body }: Entity): JsonObject {
  if (kind === 'route') return { match: name, ...body }
  if (kind !== 'subject') return body
  const keys = state.keysOf(name).flatMap((sha256) => {
    const key = state.get('key', sha256)
    if (key === undefined || !isJsonObject(key.body)) return []
    const { subject: _, ...rest } = key.body
    return [{ sha256, ...rest }]
  })
  return keys.length === 0 ? body : { ...body, keys }
}

interface Syntax {
  readonly begin: string
  readonly end: string
  section(name: string, kind: EntityKind, isFirst: boolean): string
  entry(body: JsonObject, entity: Entity, isFirst: boolean): string
  close(kind: EntityKind): string
}

const json: Syntax = {
  begin: '{"version":1',
  end: '}\n',
  section: (name, kind) => `,"${name}":${kind === 'route' ? '[' : kind === 'identity' ? '' : '{'}`,
  entry(body, { kind, name }, isFirst) {
    const comma = isFirst ? '' : ','
    const isNamed = kind !== 'route' && kind !== 'identity'
    return `${comma}${isNamed ? `${JSON.stringify(name)}:` : ''}${JSON.stringify(body)}`
  },
  close: (kind) => (kind === 'route' ? ']' : kind === 'identity' ? '' : '}'),
}

const yaml: Syntax = {
  begin: 'version: 1\n',
  end: '',
  section: (name) => `\n${name}:\n`,
  entry(body, { kind, name }) {
    if (kind === 'route') return `  - ${inline(body)}\n`
    if (kind === 'identity') return `${stringify(body, { lineWidth: 0 }).trimEnd().replaceAll(/^/gm, '  ')}\n`
    return `  ${inline(name)}: ${inline(body)}\n`
  },
  close: () => '',
}

/**
 * The policy as a file that says the same: JSON, or YAML with a part a line. Piece by piece, so that a million subjects
 * need no memory; a change that comes while it is read may be in it. `subject`: of all subjects only this one.
 */
export function* exportPolicy(state: PolicyState, as: 'json' | 'yaml', subject?: string): Iterable<string> {
  const syntax = as === 'json' ? json : yaml
  yield syntax.begin
  for (const [name, kind] of sections) {
    let isFirst = true
    const only = kind === 'subject' && subject !== undefined
    for (const entity of only ? [state.get(kind, subject)] : state.list(kind)) {
      if (entity === undefined) continue
      if (isFirst) yield syntax.section(name, kind, isFirst)
      yield syntax.entry(fileBody(state, entity), entity, isFirst)
      isFirst = false
    }
    if (!isFirst) yield syntax.close(kind)
  }
  yield syntax.end
}
