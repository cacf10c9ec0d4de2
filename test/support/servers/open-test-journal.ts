import { type Journal, type JournalOptions, openJournal } from '@weir/journal/open-journal.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { createLogger } from '@weir/runtime/logger.ts'

/** A journal of two topics of six partitions each, in small segments. */
export function openTestJournal(
  options: KafkaOptions,
  base: string,
  topics: readonly string[],
  rest: Partial<JournalOptions> = {},
): Promise<Journal> {
  return openJournal({
    ...options,
    log: createLogger('test', 'silent'),
    base,
    topics: topics.map((name) => ({ name, partitions: 6 })),
    maxBytes: 256 * 1024 * 1024,
    isEphemeralAllowed: true,
    onTakenAway: () => {
      throw new Error(`${base} was taken away`)
    },
    ...rest,
  })
}
