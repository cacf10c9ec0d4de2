import { readJournalNumbers, readRecordedGaps } from '@weir/clickhouse/audit/journal-numbers.ts'
import type { Span } from '@weir/clickhouse/audit/span.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { numberDiscrepancies } from '@weir/core/audit/compare-numbers.ts'
import type { Discrepancy } from '@weir/core/audit/discrepancy.ts'
import type { MeteredTopic } from './metered-topics.ts'
import type { DeadLetterNumbers } from './read-dead-letters.ts'

/**
 * The numbers of every journal that was active in the span, less recorded gaps and dead letters. What is missing or
 * stands twice is looked at again after `pause`: blocks may be on their way.
 */
export async function auditNumbers(
  client: ClickHouseClient,
  metered: MeteredTopic,
  readLetters: () => Promise<DeadLetterNumbers>,
  span: Span,
  pause: () => Promise<void>,
): Promise<readonly Discrepancy[]> {
  const look = async () => {
    const journals = await readJournalNumbers(client, metered, span)
    // After the rows: what became a dead letter in between is no hole.
    const letters = await readLetters()
    const known = [...(await readRecordedGaps(client, metered.topic)), ...letters.known]
    return numberDiscrepancies(journals, known, letters.places)
  }
  const first = await look()
  if (first.length === 0) return first
  await pause()
  return look()
}
