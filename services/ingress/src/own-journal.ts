import { topics } from '@weir/contracts/topics.ts'
import { newSpanId } from '@weir/contracts/trace-context.ts'
import type { CorrectionAckQueue } from '@weir/decide/correct/correction-ack-queue.ts'
import { findWrittenCorrections } from '@weir/journal/find-corrections.ts'
import { type Journal, openJournal } from '@weir/journal/open-journal.ts'
import type { TracedBatch } from '@weir/journal/publish/traced-batch.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import type { Config } from '@weir/runtime/read-config.ts'
import type { Service } from '@weir/runtime/start-service.ts'
import type { Tracing } from '@weir/runtime/tracing.ts'
import type { ingressVariables } from './config.ts'
import { registerJournal } from './metrics.ts'

/** The journal's topics, by their index in it. */
export const journalTopics = { decisions: 0, outcomes: 1 } as const
const recordedTopics = [topics.decisions, topics.outcomes]

/** How long a stop waits for Kafka. Records that Kafka does not have by then wait on disk for the next start. */
const drainMs = 5_000

/** Full to this share, the journal is worth a warning: a fifth of the time that Kafka may be down is left. */
const warnAtPart = 0.8

/**
 * Opens the journal with its publisher, and registers metrics and health of both. Corrections found in journals that it
 * may take over are acknowledged to Redis.
 */
export async function ownJournal(
  config: Config<typeof ingressVariables>,
  kafka: KafkaOptions,
  { run, log, metrics, checkReady, crash }: Service,
  ackQueue: Pick<CorrectionAckQueue, 'enqueue'>,
  tracing: Tracing | undefined,
): Promise<Journal> {
  // Also those of processes that may still be alive.
  ackQueue.enqueue(await findWrittenCorrections(config.journalDir))
  const specs = await readTopics()
  const journal = await run.own(
    'journal',
    openJournal({
      ...kafka,
      log,
      crash,
      crashAt: config.crashAt,
      base: config.journalDir,
      topics: recordedTopics.map((name) => ({
        name,
        partitions: specs.find((spec) => spec.name === name)?.partitions ?? 1,
      })),
      maxBytes: config.journalMaxBytes,
      fsyncMs: config.journalFsyncMs === 0 ? undefined : config.journalFsyncMs,
      isEphemeralAllowed: config.journalEphemeral === '1',
      onCorrections: (corrections) => ackQueue.enqueue(corrections),
      onTraced: tracing === undefined ? undefined : (batch) => traceSent(tracing, batch),
      onTakenAway: () => run.fail(new Error('the journal was taken over by another process: a new one is begun')),
    }),
    async (opened) => {
      const { left } = await opened.drain(drainMs)
      if (left > 0) log.warn({ left }, 'records wait on disk: the next process to start here sends them')
    },
  )
  registerJournal(metrics, journal, recordedTopics)
  checkReady('journal', () => healthOf(journal))
  return journal
}

/** The way of each traced decision from the journal to Kafka, be the journal this process's or a dead one's. */
function traceSent(tracing: Tracing, { topic, partition, records, isAdopted, acknowledgedMs, traced }: TracedBatch) {
  const attributes = {
    'messaging.system': 'kafka',
    'messaging.operation.type': 'send',
    'messaging.destination.name': topic,
    'messaging.destination.partition.id': String(partition),
    'messaging.batch.message_count': records,
    'weir.journal.adopted': isAdopted,
  }
  for (const { trace, appendedMs } of traced) {
    const { traceId, spanId: parentSpanId } = trace
    const times = { startMs: appendedMs, endMs: acknowledgedMs }
    const span = { traceId, spanId: newSpanId(), parentSpanId, ...times, attributes }
    tracing.record({ name: `send ${topic}`, kind: 'producer', ...span })
  }
}

type JournalHealth = Pick<Journal, 'trouble' | 'isOutOfSpace' | 'backlog' | 'maxBytes' | 'unsentFor' | 'lacksCopies'>

/**
 * Returns what /readyz says of the journal. These are warnings: a full journal is no reason to send requests elsewhere
 * where they are admitted all the same.
 */
export function healthOf({ trouble, isOutOfSpace, backlog, maxBytes, unsentFor, lacksCopies }: JournalHealth) {
  if (trouble !== undefined) return { warning: `the journal accepts no records: ${trouble}` }
  if (isOutOfSpace)
    return {
      warning:
        'no room for the next segment in WEIR_JOURNAL_DIR: what does not fit into the present one is not recorded. ' +
        'Free some space there',
    }
  if (backlog.bytes > maxBytes * warnAtPart)
    return { warning: `the journal is nearly full: Kafka does not accept its records${unsentFor && `: ${unsentFor}`}` }
  if (unsentFor !== '') return { warning: `Kafka does not accept the journal's records: ${unsentFor}` }
  if (lacksCopies)
    return {
      warning: 'Kafka has several brokers but keeps one copy of some records: run weir topics to list the topics',
    }
  return undefined
}
