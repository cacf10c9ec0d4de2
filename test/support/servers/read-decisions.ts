import { parseDecision } from '@weir/contracts/decision.v1.ts'
import type { DecisionRecordV1 } from '@weir/contracts/decision-columns.ts'
import { topics } from '@weir/contracts/topics.ts'
import { kafkaOptions } from './kafka-topics.ts'
import { type ReadRecord, readTopic } from './read-topic.ts'

/** How many decisions these records stand for. */
export const countOf = (records: readonly DecisionRecordV1[]): number =>
  records.reduce((sum, { count }) => sum + count, 0)

const decisionsIn = (records: readonly ReadRecord[]) =>
  records.flatMap(({ value }) => {
    const parsed = parseDecision(value ?? Buffer.alloc(0))
    return parsed.kind === 'decision' ? [parsed.decision] : []
  })

/** The decisions in a Kafka that `isWanted`, once `enough` says that these are all. */
export async function readDecisions(
  kafka: { readonly address: string },
  isWanted: (decision: DecisionRecordV1) => boolean,
  enough: (wanted: readonly DecisionRecordV1[]) => boolean,
): Promise<DecisionRecordV1[]> {
  const wanted = (records: readonly ReadRecord[]) => decisionsIn(records).filter(isWanted)
  return wanted(await readTopic(kafkaOptions(kafka.address), topics.decisions, (records) => enough(wanted(records))))
}
