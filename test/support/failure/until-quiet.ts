import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { topics } from '@weir/contracts/topics.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { Counter } from './count.ts'
import { type KafkaOffsets, openKafkaOffsets } from './kafka-offsets.ts'
import type { Stack } from './stack.ts'

/** All that was answered is in ClickHouse within this time after the last fault. */
const drainDeadlineMs = 120_000
/** Nothing new for so long: what is not there by now does not come. Longer than dead journals wait to be adopted. */
const stillMs = 25_000
/** Refusals that may be recorded or not: nobody knows how many come, but they come one behind the other. */
const uncertainStillMs = 5_000

const meteringGroup = 'weir-metering'

/** A dead process is found within seconds; its journal is then sent by another. */
const adoptedDeadlineMs = 60_000

/** Nothing of a process that died is left on disk: each directory is that of an ingress that lives, and it took all over. */
export async function untilAdopted({ dir, names }: Pick<Stack, 'dir' | 'names'>): Promise<void> {
  const base = join(dir, 'journal')
  const living = names.filter((name) => name.startsWith('ingress')).length
  const list = (path: string) => (existsSync(path) ? readdirSync(path) : [])
  const isAdopted = () => {
    const journals = list(base).filter((name) => existsSync(join(base, name, 'live.sock')))
    return journals.length <= living && journals.every((name) => list(join(base, name, 'adopted')).length === 0)
  }
  await waitUntil(isAdopted, { deadlineMs: adoptedDeadlineMs, everyMs: 250 })
}

/** Metering has gone past all that stood in Kafka when this was called. */
async function untilRead(kafka: KafkaOffsets): Promise<boolean> {
  const ends = await kafka.ends(topics.decisions)
  const isRead = async () => {
    const committed = await kafka.committed(meteringGroup)
    return [...ends].every(([partition, end]) => (committed.get(partition) ?? 0n) >= end)
  }
  return (await waitUntil(isRead, { deadlineMs: drainDeadlineMs, everyMs: 250 })) === true
}

/**
 * Waits until the raw table has so many (`isUncertain`: and as many more as come), or until nothing comes any more; and then until
 * what Kafka has is read, so that also what came too often is there.
 */
export async function untilQuiet(
  kafkaAddress: string,
  counter: Counter,
  { wanted, isUncertain }: { readonly wanted: number; readonly isUncertain: boolean },
): Promise<void> {
  const kafka = await openKafkaOffsets(kafkaAddress)
  try {
    let last = -1
    let changedAtMs = performance.now()
    const isQuiet = async () => {
      const total = (await counter.rawTotal()) ?? 0
      if (total !== last) changedAtMs = performance.now()
      last = total
      const quietMs = performance.now() - changedAtMs
      return (total >= wanted && (!isUncertain || quietMs > uncertainStillMs)) || quietMs > stillMs
    }
    await waitUntil(isQuiet, { deadlineMs: drainDeadlineMs, everyMs: 250 })
    if (!(await untilRead(kafka))) throw new Error('metering has not read all that is in Kafka')
  } finally {
    await kafka.close()
  }
}
