import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { readLastOffset } from '@weir/clickhouse/number-queries.ts'
import type { ClickhouseServer } from '@weir/clickhouse/variables.ts'
import { encodeCommitMetadata, parseCommitMetadata } from '@weir/contracts/commit-metadata.v2.ts'
import { topics } from '@weir/contracts/topics.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { PartitionAdmin } from '@weir/kafka/partition-admin.ts'

interface SeekOptions {
  readonly partition: number
  /** An offset, or `clickhouse` for the one after the last that ClickHouse has. */
  readonly to: string
  readonly outcomes: boolean
}

/**
 * Moves metering's committed offset of a partition, and marks the move as deliberate. Metering must not run: Kafka
 * refuses it while the group has members. Rows that are there already are dropped by their numbers when they are read
 * again.
 */
export async function seekMetering(
  { partition, to, outcomes }: SeekOptions,
  servers: { readonly kafka: KafkaOptions; readonly clickhouse: ClickhouseServer | string },
  print: (text: string) => void,
): Promise<void> {
  const topic = outcomes ? topics.outcomes : topics.decisions
  const groupId = outcomes ? 'weir-metering-outcomes' : 'weir-metering'
  const admin = new PartitionAdmin(servers.kafka, groupId)
  const client = connectClickhouse(servers.clickhouse, 'weir-seek')
  try {
    const { committed, first, end, topicId } = await admin.describe(topic, partition)
    const last = to === 'clickhouse' ? await readLastOffset(client, { topic, topicId, partition }) : undefined
    const offset = to === 'clickhouse' ? (last === undefined ? first : last + 1n) : BigInt(to)
    if (offset < first || offset > end) {
      throw new WeirError(
        'SEEK_INVALID',
        `Offset ${offset} is outside the log, which has ${first} to ${end}; choose one within.`,
      )
    }
    // A block that this partition declares has records of others too: its next owner finishes it first.
    const { intent } = parseCommitMetadata(committed?.metadata ?? '', partition)
    const metadata = encodeCommitMetadata({ topicId, intent, isSought: true, seekOverrideUpTo: undefined })
    await admin.commit(topic, partition, offset, metadata)
    print(
      `partition ${partition} of ${topic}: committed offset moved from ${committed?.offset ?? 'nothing'} to ${offset}`,
    )
  } finally {
    await Promise.all([admin.close(), client.close()])
  }
}
