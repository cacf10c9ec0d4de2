import type { TopicIdPartition } from '@weir/clickhouse/number-queries.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'
import type { Expired } from './judge-start.ts'

/** The row of weir.gaps for offsets that Kafka deleted unread. The same row however often it is noticed. */
export function expiredRow({ topic, topicId, partition }: TopicIdPartition, { from, to }: Expired): object {
  const unknown = formatTs(0)
  return {
    ...{ cause: 'expired', topic, topic_id: topicId, partition, journal: '00000000-0000-0000-0000-000000000000' },
    ...{ from_seq: 0, to_seq: 0, from_offset: Number(from), to_offset: Number(to), count: Number(to - from) + 1 },
    ...{ from_ts: unknown, to_ts: unknown, detail: 'the log began behind what was committed' },
  }
}
