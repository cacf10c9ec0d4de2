import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { topics } from '@weir/contracts/topics.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'

/** Below the broker's bound of 1 MB a batch, when they go to six partitions. */
const recordsPerSend = 6_000
const dayMs = 86_400_000

/** A decision of a subject that has used so much of its daily quota of 1,000, and of its minute. */
function decisionOf(subject: string, used: number, at: number): string {
  const tsMs = Date.now()
  const limits = [
    { name: 'minute', size: 100, used: at % 60, remaining: 100 - (at % 60), resetMs: 60_000 - (tsMs % 60_000) },
    { name: 'day', size: 1_000, used, remaining: 1_000 - used, resetMs: dayMs - (tsMs % dayMs) },
  ]
  const decision = { id: uuidv7(tsMs), tsMs, subject, keyId: `key-${subject}`, route: 'GET /v1/items', limits }
  const open = encodeDecisionOpen(decisionInput(decision))
  return `${open},"journal":"01a1fdfa-6d10-4540-81b4-576e9d55a36f","seq":${at}}`
}

/** Appends decisions; `of` tells whose the n-th is, and what it has used. */
export async function fillTopic(
  kafka: KafkaOptions,
  events: number,
  of: (number: number) => { readonly subject: string; readonly used: number },
): Promise<void> {
  const sender = createRecordSender(kafka)
  try {
    for (let sent = 0; sent < events; sent += recordsPerSend) {
      const batch = Array.from({ length: Math.min(recordsPerSend, events - sent) }, (_, index) => {
        const { subject, used } = of(sent + index)
        return { key: subject, value: decisionOf(subject, used, sent + index) }
      })
      await sender.send(topics.decisions, batch)
    }
  } finally {
    await sender.close()
  }
}
