import { type Entity, isJsonObject, type JsonObject, type JsonValue, keyBody, sectionOf } from '../entities.ts'
import { parseSha256, parseTimeMs } from '../policy-values.ts'
import { parsePolicy } from '../reader/parse-policy.ts'
import { defaultKeyId } from '../reader/read-keys.ts'
import type { PolicyProblem } from '../reader/text-reader.ts'
import { definitionKinds } from './definitions.ts'

/** The entities of a text, or every problem of it. */
export type ParsedEntities =
  | { readonly kind: 'entities'; readonly entities: readonly Entity[] }
  | { readonly kind: 'problems'; readonly problems: readonly PolicyProblem[] }

/** Kinds whose entries stand in weir.yaml as they are. */
const plainKinds = definitionKinds.filter((kind) => kind !== 'route' && kind !== 'identity')

/**
 * The entities of a text that `parsePolicy` accepts, all of origin `file`; else its problems, every one with its line.
 */
export function entitiesOf(policyText: string, fileName: string): ParsedEntities {
  const parsed = parsePolicy(policyText, fileName)
  if (parsed.kind === 'problems') return parsed
  const entities: Entity[] = []
  for (const kind of plainKinds) {
    for (const [at, [name, body]] of parsed.written(sectionOf[kind]).entries()) {
      entities.push(fileEntity(kind, name, at, bodyOf(body)))
    }
  }
  for (const [at, [, item]] of parsed.written(sectionOf.route).entries()) {
    const { match, ...body } = bodyOf(item)
    if (typeof match === 'string') entities.push(fileEntity('route', match, at, body))
  }
  const identity = Object.fromEntries(parsed.written(sectionOf.identity))
  if (Object.keys(bodyOf(identity)).length > 0) {
    entities.push(fileEntity('identity', 'identity', undefined, bodyOf(identity)))
  }
  for (const [id, written] of parsed.written(sectionOf.subject)) {
    const { keys, ...body } = bodyOf(written)
    entities.push(fileEntity('subject', id, undefined, body), ...keysOf(id, keys))
  }
  return { kind: 'entities', entities }
}

/** Entries that are there but empty are as good as left out. */
function bodyOf(value: unknown): JsonObject {
  if (!isJsonObject(value)) return {}
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== null))
}

const fileEntity = (kind: Entity['kind'], name: string, position: number | undefined, body: JsonObject): Entity => ({
  kind,
  name,
  origin: 'file',
  position,
  body,
})

function keysOf(subject: string, keys: JsonValue | undefined): readonly Entity[] {
  if (!Array.isArray(keys)) return []
  const entities: Entity[] = []
  for (const key of keys) {
    if (!isJsonObject(key)) continue
    const sha256 = parseSha256(String(key.sha256))
    const expiresAtMs = typeof key.expires === 'string' ? parseTimeMs(key.expires) : undefined
    if (sha256 === undefined) continue
    const id = typeof key.id === 'string' ? key.id : defaultKeyId(sha256)
    entities.push(
      fileEntity('key', sha256, undefined, keyBody({ subject, id, expiresAtMs, limits: key.limits ?? undefined })),
    )
  }
  return entities
}
