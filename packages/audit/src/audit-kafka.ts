import { missingOffsets, presentNumbers } from '@weir/clickhouse/audit/journal-numbers.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { kindOf, type Numbered, numberOf } from '@weir/contracts/journal.v1.ts'
import type { Discrepancy } from '@weir/core/audit/discrepancy.ts'
import { joined, pieces, type Range, rangesText } from '@weir/core/audit/ranges.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { offsetsSince, PartitionAdmin } from '@weir/kafka/partition-admin.ts'
import type { LogRecord } from '@weir/kafka/partition-log.ts'
import { type DeadLetterNumbers, describePartition, type MeteredTopic } from './dead-letters.ts'
import type { Progress } from './progress.ts'

/** Records of one read: about 10 MB of decisions. */
const recordsPerRead = 20_000
/** Watermarks come one a second: reading the few hundred records between two of them is cheaper than two requests. */
const joinedWithin = 500

/** A record that Kafka has and that should be a row. */
export interface MissingRecord {
  readonly offset: number
  readonly value: Buffer
}

/** Missing records of one partition. */
export interface MissingRecords extends Omit<Partition, 'range'> {
  readonly records: readonly MissingRecord[]
}

interface Suspect extends MissingRecord {
  readonly number: Numbered
}

/**
 * Returns the numbered records whose number is no row; the others are duplicates, which metering drops. If Kafka has a
 * record twice, the first one is returned: `found` holds the numbers that were missing before.
 */
async function withoutRow(
  client: ClickHouseClient,
  { metered: { table }, partition }: Partition,
  suspects: readonly Suspect[],
  found: Set<string>,
): Promise<MissingRecord[]> {
  const byJournal = Map.groupBy(suspects, ({ number }) => number.journal)
  const missing: MissingRecord[] = []
  for (const [journal, own] of byJournal) {
    const numbers = own.map(({ number }) => number.seq)
    const present = await presentNumbers(client, table, journal, partition, numbers)
    for (const { offset, value, number } of own) {
      const name = `${journal} ${number.seq}`
      if (present.has(number.seq) || found.has(name)) continue
      found.add(name)
      missing.push({ offset, value })
    }
  }
  return missing.sort((a, b) => a.offset - b.offset)
}

/** Sorts out watermarks and gaps, which are never rows, and dead letters, which are stored elsewhere. */
function sort(records: readonly LogRecord[], letters: ReadonlySet<number>) {
  const suspects: Suspect[] = []
  const unreadable: Range[] = []
  for (const record of records) {
    const offset = Number(record.offset)
    const { value } = record
    if (letters.has(offset) || (value !== null && kindOf(value) !== 'record')) continue
    const number = value === null ? undefined : numberOf(value)
    // The bytes are copied: they share their memory with the whole fetch.
    if (value !== null && number !== undefined) suspects.push({ offset, value: Buffer.from(value), number })
    else unreadable.push({ from: offset, to: offset })
  }
  return { suspects, unreadable }
}

interface Partition {
  readonly metered: MeteredTopic
  readonly partition: number
  readonly topicId: string
  /** Offsets that have to be rows, or something else that is known. */
  readonly range: Range
}

/** Finds the records of a partition's range that are no rows although they should be, by what they are instead. */
async function judge(client: ClickHouseClient, admin: PartitionAdmin, one: Partition, letters: ReadonlySet<number>) {
  const { metered, partition, topicId, range } = one
  const { topic, table } = metered
  const gone = await missingOffsets(client, table, { partition, topicId }, range)
  const isGone = (offset: number) => gone.some(({ from, to }) => from <= offset && offset <= to)
  const missing: MissingRecord[] = []
  /** Offsets of what neither is a row nor is kept as a dead letter. */
  const unreadable: Range[] = []
  const numbers = new Set<string>()
  for (const piece of joined(gone, joinedWithin).flatMap((range) => pieces(range, recordsPerRead))) {
    const read = await admin.readRange(topic, partition, BigInt(piece.from), BigInt(piece.to))
    const found = sort(
      read.filter(({ offset }) => isGone(Number(offset))),
      letters,
    )
    missing.push(...(await withoutRow(client, one, found.suspects, numbers)))
    unreadable.push(...found.unreadable)
  }
  return { missing, unreadable }
}

/**
 * Returns the offsets of each partition that Kafka still has, that were appended since, and that are committed as
 * metered.
 */
async function partitionsOf(
  admin: PartitionAdmin,
  kafka: KafkaOptions,
  metered: MeteredTopic,
  sinceMs: number,
): Promise<Partition[]> {
  const found: Partition[] = []
  for (const { partition, offset } of await offsetsSince(kafka, metered.topic, sinceMs)) {
    const { committed, first, topicId } = await describePartition(admin, metered.topic, partition)
    if (committed === undefined) continue
    const from = Math.max(Number(offset), Number(first))
    found.push({ metered, partition, topicId, range: { from, to: Number(committed.offset) - 1 } })
  }
  return found
}

interface KafkaAudit {
  readonly sinceMs: number
  /** Resolves when every replica of a cluster has the rows that any had when it was called. */
  readonly catchUp: () => Promise<void>
  readonly tell?: Progress['tell']
}

/** Compares the committed records that Kafka still has with the rows, from a time by the broker's clock on. */
export async function auditKafka(
  client: ClickHouseClient,
  kafka: KafkaOptions,
  metered: MeteredTopic,
  readLetters: () => Promise<DeadLetterNumbers>,
  { sinceMs, catchUp, tell = () => undefined }: KafkaAudit,
) {
  const admin = new PartitionAdmin(kafka, metered.groupId)
  const findings: Discrepancy[] = []
  const all: MissingRecords[] = []
  /** Offsets that were compared. */
  let compared = 0
  try {
    const partitions = await partitionsOf(admin, kafka, metered, sinceMs)
    // Read after the committed offset, so unreadable records are already dead letters.
    const letters = await readLetters()
    // After what is committed too: a replica may not have its rows yet.
    await catchUp()
    for (const [at, one] of partitions.entries()) {
      const { partition, topicId, range } = one
      tell(`${metered.topic}, partition ${partition}`, at / partitions.length)
      compared += Math.max(0, range.to - range.from + 1)
      const own = letters.places.filter((letter) => letter.topic === metered.topic && letter.partition === partition)
      const { missing, unreadable } = await judge(client, admin, one, new Set(own.map(({ offset }) => offset)))
      const where = `${metered.topic}, partition ${partition}`
      const common = { check: 'kafka', where, expected: '0' } as const
      if (missing.length > 0) {
        const ranges = joined(
          missing.map(({ offset }) => ({ from: offset, to: offset })),
          1,
        )
        const note = `offsets ${rangesText(ranges)}`
        findings.push({ ...common, what: 'records without a row', found: String(missing.length), note })
        all.push({ metered, partition, topicId, records: missing })
      }
      if (unreadable.length > 0) {
        const note = `offsets ${rangesText(joined(unreadable, 1))}; not Weir records, and stored nowhere`
        findings.push({ ...common, what: 'unreadable, no dead letter', found: String(unreadable.length), note })
      }
    }
  } finally {
    await admin.close()
  }
  return { findings, missing: all, compared }
}
