import { setTimeout as delay } from 'node:timers/promises'
import { WeirError } from '@weir/core/errors.ts'
import type { PartitionAdmin, PartitionFacts } from '@weir/kafka/partition-admin.ts'

/** A broker that has just started, or taken a group over, needs a second or two before it knows the group's offsets. */
const attemptsMax = 20
const pauseMs = 500

/** Describes a partition, and waits up to ten seconds for a broker that is not ready yet. */
export async function describePartition(
  admin: PartitionAdmin,
  topic: string,
  partition: number,
): Promise<PartitionFacts> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await admin.describe(topic, partition)
    } catch (error) {
      if (!(error instanceof WeirError) || error.code !== 'KAFKA_UNAVAILABLE' || attempts >= attemptsMax) throw error
      await delay(pauseMs)
    }
  }
}
