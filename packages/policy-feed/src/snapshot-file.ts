import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { encodeEntityChange, parsePolicyRecord } from '@weir/contracts/policy.v1.ts'
import { type Entity, type EntityChange, entityKinds, isJsonObject, putEntity } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { PolicyCheckpoint } from './assemble-transactions.ts'

/*
 * First line: `{"v":1,"heardMs":…}`, always of the same length, so that it can be renewed in place. Then a line per
 * entity, its record's key as JSON, a tab and the record's value. The same for entities that changed while these were
 * written: the last line of a name counts, and without a value it is deleted. Last line: how many lines there are, how
 * many of them later ones, and where in the topic that is. A file without its last line is none.
 */

/** Digits of the time, until the year 2286. */
const timeDigits = 13
const headLine = (heardMs: number) =>
  `{"v":1,"heardMs":${String(Math.max(0, Math.floor(heardMs))).padStart(timeDigits, ' ')}}\n`
/** Made in one go, which takes a millisecond or two: requests come between one and the next. */
const chunkCharacters = 64 * 1024

/** A snapshot as it was read. */
export interface Snapshot {
  readonly checkpoint: PolicyCheckpoint
  /** When Kafka last said that this is all, in milliseconds since the epoch. */
  readonly heardMs: number
  /** Each is made when it is asked for. */
  entities(): Iterable<Entity>
}

/** Reads a snapshot whole; undefined where there is none. Rejects for one that is of no use. */
export async function readSnapshot(path: string): Promise<Snapshot | undefined> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  return bytes === undefined ? undefined : parseSnapshot(bytes)
}

function parseSnapshot(bytes: Buffer): Snapshot {
  const lastAt = bytes.lastIndexOf(10, bytes.length - 2) + 1
  const head = jsonLine(bytes, 0, bytes.indexOf(10))
  const foot = jsonLine(bytes, lastAt, bytes.length)
  const bodyAt = bytes.indexOf(10) + 1
  const { heardMs } = head
  const { offset, id, lines, later } = foot
  if (head.v !== 1 || typeof heardMs !== 'number') throw new Error('its first line is not a snapshot header')
  if (typeof offset !== 'string' || typeof id !== 'string' || typeof lines !== 'number' || typeof later !== 'number') {
    throw new Error('its last line is missing')
  }
  let count = 0
  let laterAt = bodyAt
  for (let at = bodyAt; at < lastAt; at = nextLine(bytes, at)) {
    if (count === lines - later) laterAt = at
    count += 1
  }
  if (count !== lines) throw new Error(`it has ${count} of its ${lines} lines`)
  if (later === 0) laterAt = lastAt
  return {
    checkpoint: { offset: BigInt(offset), id },
    heardMs,
    entities: () => entitiesIn(bytes, bodyAt, laterAt, lastAt),
  }
}

/** Reads each of millions of lines one time, and stores none. */
function* entitiesIn(bytes: Buffer, from: number, laterAt: number, to: number): Iterable<Entity> {
  const later = new Map<string, Entity | undefined>()
  for (let at = laterAt; at < to; at = nextLine(bytes, at)) {
    const { key, entity } = readLine(bytes, at)
    later.set(key.toString(), entity)
  }
  for (let at = from; at < laterAt; at = nextLine(bytes, at)) {
    const { key, entity } = readLine(bytes, at)
    if (entity !== undefined && (later.size === 0 || !later.has(key.toString()))) yield entity
  }
  for (const entity of later.values()) if (entity !== undefined) yield entity
}

const nextLine = (bytes: Buffer, at: number) => bytes.indexOf(10, at) + 1

function jsonLine(bytes: Buffer, from: number, to: number) {
  const value: unknown = JSON.parse(bytes.toString('utf8', from, to))
  if (!isJsonObject(value)) throw new Error('a line is not an object')
  return value
}

/** An entity, or undefined for one that is deleted. */
function readLine(bytes: Buffer, at: number): { readonly key: Buffer; readonly entity: Entity | undefined } {
  const tab = bytes.indexOf(9, at)
  const written = bytes.subarray(at + 1, tab - 1)
  // Nearly no name has anything in it that JSON writes in another way.
  const key = written.includes(92) ? Buffer.from(String(JSON.parse(bytes.toString('utf8', at, tab)))) : written
  const value = bytes.subarray(tab + 1, bytes.indexOf(10, tab))
  if (value.length === 0) return { key, entity: undefined }
  const parsed = parsePolicyRecord(key, value)
  if (parsed.kind !== 'entity') throw new Error(`its line of ${key.toString()} cannot be read`)
  return { key, entity: parsed.change.entity }
}

function lineOf(change: EntityChange): string {
  const { key, value } = encodeEntityChange(change)
  return `${JSON.stringify(key)}\t${value ?? ''}\n`
}

/** What ends a snapshot. */
export interface SnapshotEnd {
  readonly checkpoint: PolicyCheckpoint
  /** What was taken over since the write began. */
  readonly later: readonly EntityChange[]
}

/**
 * Replaces the snapshot, so that a reader sees the old or the new one whatever happens. Requests go on meanwhile, and
 * changes too: `end` is asked when all else is written, and undefined leaves the old snapshot in its place.
 */
export async function writeSnapshot(
  path: string,
  state: PolicyState,
  heardMs: number,
  end: () => SnapshotEnd | undefined,
): Promise<boolean> {
  const file = await open(`${path}.new`, 'w', 0o600)
  try {
    await file.write(headLine(heardMs))
    const lines = await writeEntities(file, state)
    const ending = end()
    if (ending === undefined) return false
    const { checkpoint, later } = ending
    const total = lines + later.length
    const foot = JSON.stringify({
      lines: total,
      later: later.length,
      offset: String(checkpoint.offset),
      id: checkpoint.id,
    })
    await file.write(`${later.map(lineOf).join('')}${foot}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
  return true
}

async function writeEntities(file: FileHandle, state: PolicyState): Promise<number> {
  let chunk = ''
  let lines = 0
  for (const kind of entityKinds) {
    for (const entity of state.list(kind)) {
      chunk += lineOf(putEntity(entity))
      lines += 1
      if (chunk.length < chunkCharacters) continue
      await file.write(chunk)
      chunk = ''
    }
  }
  await file.write(chunk)
  return lines
}

/** Says that the snapshot is still all there is, without writing it again. */
export async function renewSnapshot(path: string, heardMs: number): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.write(headLine(heardMs), 0)
  } finally {
    await file.close()
  }
}
