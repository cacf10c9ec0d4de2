import { WeirError } from '@weir/core/errors.ts'
import type { EachBatchPayload } from 'kafkajs'
import type { KafkaLog } from './connect.ts'
import type { Assignment } from './consumer-status.ts'
import { isDenied, isKafkaError, isLostMembership, kafkaFault, reasonOf } from './kafka-errors.ts'
import type { LogRecord } from './partition-log.ts'
import { fetchedRecords } from './wire/fetched-record.ts'
import { isOfSeveralBrokers, isStillAssigned, kafkajs, type OffsetCommit } from './wire/kafkajs-fixes.ts'

/** One record of a batch. */
export interface ConsumedRecord extends Omit<LogRecord, 'offset'> {
  readonly offset: string
  /** The offset as a number, which is exact up to 2^53. */
  readonly position: number
  /** The fetch that the value is a part of, for who reads many values without making each an object. */
  readonly bytes: Buffer
  /** Where the value stands in `bytes`; -1 for a record without value. */
  readonly valueStart: number
  readonly valueEnd: number
}

/**
 * Records of one partition in order. A handler that returns is done with all of them; one that throws an error of
 * `heartbeat` or `commit` gets them again if the partition is still ours; one that throws `PARTITION_STOPPED` gets no
 * more of this partition until it is assigned again; any other error ends the consumer.
 */
export interface RecordBatch {
  readonly topic: string
  readonly partition: number
  /** What the other brokers have for us comes in batches of its own. */
  readonly isOfSeveralBrokers: boolean
  /** Never empty. */
  readonly records: readonly ConsumedRecord[]
  /**
   * To be called at least every third of the session timeout while the handler works. Rejects with `PARTITION_LOST` or
   * `KAFKA_UNAVAILABLE`.
   */
  heartbeat(): Promise<void>
  /**
   * Commits for this partition: the next start reads from `nextOffset`, with at most 4,096 bytes of `metadata` stored
   * with it. Rejects with `PARTITION_LOST` when the partition is not ours any more, even if Kafka would have taken
   * it; with `KAFKA_UNAVAILABLE` it may or may not stand. Does not change what is read next here.
   */
  commit(nextOffset: string, metadata?: string): Promise<void>
  /**
   * As `commit`, for several partitions of the topic in one request. Kafka may store some of them and refuse others, so
   * that after a rejection each of them may stand.
   */
  commitAll(commits: readonly OffsetCommit[]): Promise<void>
  /**
   * The partition was lost, or the assignment renewed: whatever is kept from before is void, and nothing may be written
   * for it.
   */
  isFenced(): boolean
}

function openBatch(
  { batch, heartbeat, commitOffsetsIfNecessary }: EachBatchPayload,
  assignment: Assignment,
): RecordBatch {
  const { topic, partition } = batch
  const what = `partition ${partition} of ${topic}`
  const isFenced = () => !isStillAssigned(batch)
  const refuseIfStale = () => {
    if (isFenced()) throw new WeirError('PARTITION_LOST', `${what} was reassigned; its new owner will reread it`)
  }
  const commitAll = async (commits: readonly OffsetCommit[]) => {
    refuseIfStale()
    try {
      await commitOffsetsIfNecessary({ topics: [{ topic, partitions: [...commits] }] })
    } catch (error) {
      throw kafkaFault(`committing ${commits[0]?.offset} for ${what}`, error)
    }
  }
  return {
    topic,
    partition,
    isOfSeveralBrokers: isOfSeveralBrokers(batch),
    records: fetchedRecords(batch.messages),
    isFenced,
    async heartbeat() {
      refuseIfStale()
      try {
        await heartbeat()
        assignment.progress()
      } catch (error) {
        throw kafkaFault(`heartbeat for ${what}`, error)
      }
    },
    commitAll,
    commit: (offset, metadata) => commitAll([{ partition, offset, ...(metadata === undefined ? {} : { metadata }) }]),
  }
}

/** What handles a batch, and what is called when that fails. */
export interface HandlingOptions {
  /** Handed nothing more until the next assignment. */
  readonly onStopped: (place: { topic: string; partition: number }, reason: string) => void
  readonly onBatch: (batch: RecordBatch) => Promise<void>
  readonly assignment: Assignment
  readonly onHandlerFault: (error: unknown) => void
  readonly log: KafkaLog
}

/** The same batch comes again, in seconds: it is said once. */
function deny({ topic, partition }: RecordBatch, reason: string, { assignment, log }: HandlingOptions): void {
  const denied = { topic, partition, reason }
  if (assignment.deny(denied)) log.warn(denied, 'batch not processed, retrying')
}

/**
 * A lost membership is given back to kafkajs, which re-joins. Kafka being away becomes an error that makes it wait and
 * fetch the same records again. A fault of the handler ends the consumer.
 */
function passOn(error: unknown, batch: RecordBatch, options: HandlingOptions): void {
  const cause = error instanceof WeirError ? error.cause : error
  if (isLostMembership(cause)) throw cause
  const isAway = error instanceof WeirError && /^KAFKA_(UNAVAILABLE|DENIED)$/.test(error.code)
  const isRefused = error instanceof WeirError && error.code === 'KAFKA_REFUSED'
  if (isDenied(cause)) deny(batch, reasonOf(cause), options)
  if (isAway || (isKafkaError(cause) && !isRefused)) throw new kafkajs.KafkaJSError(reasonOf(cause))
  if (error instanceof WeirError && error.code === 'PARTITION_LOST') {
    options.log.info({ topic: batch.topic, partition: batch.partition }, 'batch dropped, partition reassigned')
    return
  }
  if (error instanceof WeirError && error.code === 'PARTITION_STOPPED') {
    options.onStopped({ topic: batch.topic, partition: batch.partition }, error.message)
    return
  }
  options.onHandlerFault(error)
  // Ends the consumer: kafkajs would run the handler five times more, or for a TypeError stop without a word.
  throw Object.assign(new Error('the handler failed', { cause: error }), { retriable: false })
}

/** One batch through the handler: on to the next only if the handler returned and the partition is still ours. */
export async function handleBatch(payload: EachBatchPayload, options: HandlingOptions): Promise<void> {
  const { batch } = payload
  const open = openBatch(payload, options.assignment)
  if (open.isFenced()) return
  const { topic, partition } = batch
  for (const { fault: reason } of open.records) {
    if (reason !== undefined) options.log.error({ topic, partition, reason }, 'records cannot be read')
  }
  const lagFrom = (offset: string) => Number(BigInt(batch.highWatermark) - BigInt(offset))
  const [first, last] = [open.records[0], open.records.at(-1)]
  options.assignment.begin({
    topic,
    partition,
    lag: lagFrom(first?.offset ?? batch.lastOffset()),
    oldestMs: first?.timestampMs,
  })
  try {
    await options.onBatch(open)
  } catch (error) {
    return passOn(error, open, options)
  }
  if (open.isFenced()) return
  payload.resolveOffset(batch.lastOffset())
  const lag = lagFrom(batch.lastOffset()) - 1
  options.assignment.moveTo({ topic, partition, lag, oldestMs: lag > 0 ? last?.timestampMs : undefined })
}
