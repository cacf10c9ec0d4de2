import { createHash } from 'node:crypto'
import { encodeEntityChange, parsePolicyRecord } from '@weir/contracts/policy.v1.ts'
import { type Entity, type EntityKind, type JsonObject, putEntity } from '@weir/policy/entities.ts'

export const subjects = 1_000_000

const definitions: readonly (readonly [EntityKind, string, JsonObject])[] = [
  ['limit', 'minute', { algorithm: 'fixed_window', size: 100, window: '1m' }],
  ['limit', 'day', { algorithm: 'fixed_window', size: 5_000, period: 'day' }],
  ['plan', 'free', { limits: ['minute', 'day'] }],
  ['plan', 'top', { limits: ['minute'] }],
]
const zones = ['UTC', 'Asia/Kathmandu', 'Europe/Berlin', 'America/New_York']

export const subjectName = (n: number) => `customer-${String(n).padStart(7, '0')}`
export const keyHash = (n: number) => createHash('sha256').update(`key ${n}`).digest('hex')

export const entity = (kind: EntityKind, name: string, body: JsonObject): Entity => ({
  kind,
  name,
  origin: 'admin',
  position: undefined,
  body,
})

/** The same plans and limits with as many routes as a policy has. */
export function* manyRoutes(): Iterable<Entity> {
  for (const [kind, name, body] of definitions) yield entity(kind, name, body)
  for (let n = 0; n < 10_000; n += 1) yield entity('route', `GET /v1/${n}/:id`, n % 2 === 0 ? {} : { limits: ['day'] })
}

/** Two plans, two limits, and a million subjects with one key each, made one by one. */
export function* entities(): Iterable<Entity> {
  for (const [kind, name, body] of definitions) yield entity(kind, name, body)
  for (let n = 0; n < subjects; n += 1) {
    const subject = subjectName(n)
    yield entity('subject', subject, {
      plan: n % 10 === 0 ? 'top' : 'free',
      timeZone: zones[n % zones.length] ?? 'UTC',
    })
    yield entity('key', keyHash(n), { subject, id: `key-${n}` })
  }
}

/** The same as the topic's records, one after the other with their lengths before them. */
export function encodedEntities(): Buffer[] {
  const blocks: Buffer[] = []
  let lines: string[] = []
  for (const one of entities()) {
    const { key, value } = encodeEntityChange(putEntity(one))
    lines.push(JSON.stringify([key, value]))
    if (lines.length < 10_000) continue
    blocks.push(Buffer.from(lines.join('\n')))
    lines = []
  }
  return [...blocks, Buffer.from(lines.join('\n'))]
}

/** The entities of lines as a snapshot on disk has them. */
export function* decodedEntities(blocks: readonly Buffer[]): Iterable<Entity> {
  for (const block of blocks) {
    for (const line of block.toString('utf8').split('\n')) {
      const [key, value]: unknown[] = JSON.parse(line)
      const record = parsePolicyRecord(Buffer.from(String(key)), Buffer.from(String(value)))
      if (record.kind === 'entity' && record.change.entity !== undefined) yield record.change.entity
    }
  }
}
