import { topics } from '@weir/contracts/topics.ts'

/** A topic of which something may not be readable. */
export interface LetteredTopic {
  readonly topic: string
  /** Where what cannot be read is kept. */
  readonly deadLetters: string
}

/** A topic whose records become rows. */
export interface MeteredTopic extends LetteredTopic {
  readonly table: string
  /** The consumer group that inserts them. */
  readonly groupId: string
}

export const meteredTopics: readonly MeteredTopic[] = [
  {
    topic: topics.decisions,
    deadLetters: topics.decisionsDeadLetters,
    table: 'decisions',
    groupId: 'weir-metering',
  },
  {
    topic: topics.outcomes,
    deadLetters: topics.outcomesDeadLetters,
    table: 'outcomes',
    groupId: 'weir-metering-outcomes',
  },
]

export const letteredTopics: readonly LetteredTopic[] = [
  ...meteredTopics,
  { topic: topics.alerts, deadLetters: topics.alertsDeadLetters },
]
