import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { BatchConsumer } from './consume-batches.ts'
import type { PartitionPosition } from './consumer-status.ts'

type Consumer = Pick<BatchConsumer, 'groupId' | 'status'>
type Lag = readonly [labels: readonly [group: string, topic: string, partition: string], number: number]

/** Partitions of a group that have series of their own. Those beyond are one, as names beyond a bound are anywhere. */
const partitionsMax = 256

const secondsOf = ({ oldestMs }: PartitionPosition) =>
  oldestMs === undefined ? 0 : Math.max(0, Date.now() - oldestMs) / 1_000

/** A number of each partition of ours; of those beyond the bound what `join` makes of theirs. */
const lagsOf =
  (
    consumers: readonly Consumer[],
    numberOf: (position: PartitionPosition) => number,
    join: (...numbers: number[]) => number,
  ) =>
  (): Lag[] =>
    consumers.flatMap(({ groupId, status: { positions } }) => {
      const own = positions.slice(0, partitionsMax).map((one): Lag => {
        return [[groupId, one.topic, String(one.partition)], numberOf(one)]
      })
      const others = positions.slice(partitionsMax)
      const [first] = others
      if (first === undefined) return own
      return [...own, [[groupId, first.topic, '_other'], join(...others.map(numberOf))]]
    })

/** Registers how far the consumers of a process are behind, and how they fare in their groups. */
export function registerConsumers(
  register: Parameters<typeof registerScraped>[0],
  consumers: readonly Consumer[],
): void {
  const sum = (...numbers: number[]) => numbers.reduce((total, number) => total + number, 0)
  const byGroup = (numberOf: (consumer: Consumer) => number) => () =>
    consumers.map((consumer) => [[consumer.groupId], numberOf(consumer)] as const)
  const labels = ['group', 'topic', 'partition']
  registerScraped(register, {
    weir_consumer_lag_records: {
      help: 'Records in Kafka not yet handled at the last fetch',
      labels,
      cells: lagsOf(consumers, ({ lag }) => lag, sum),
    },
    weir_consumer_lag_seconds: {
      help: 'Age of the oldest record not yet handled',
      labels,
      cells: lagsOf(consumers, secondsOf, Math.max),
    },
    weir_consumer_members_lost_total: {
      help: 'Times this process lost its place in the group',
      labels: ['group'],
      cells: byGroup(({ status }) => status.membersLost),
    },
    weir_consumer_stopped_partitions: {
      help: 'Partitions stopped until an operator acts',
      labels: ['group'],
      cells: byGroup(({ status }) => status.stopped.length),
    },
  })
}
