import { topics } from '@weir/contracts/topics.ts'

/** A topic with a dead-letter topic. */
export interface DeadLetterTopic {
  readonly topic: string
  /** The topic that stores the records that could not be read. */
  readonly deadLetters: string
}

/** A topic whose records become rows. */
export interface MeteredTopic extends DeadLetterTopic {
  readonly table: string
  /** The consumer group that inserts them. */
  readonly groupId: string
}

/** The topics whose records metering inserts. */
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

/** All topics with a dead-letter topic. */
export const deadLetterTopics: readonly DeadLetterTopic[] = [
  ...meteredTopics,
  { topic: topics.alerts, deadLetters: topics.alertsDeadLetters },
]
