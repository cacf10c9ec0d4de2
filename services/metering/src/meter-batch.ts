import type { Logger } from '@weir/runtime/logger.ts'
import { passThrough } from './pass-through.ts'
import type { DeadLetter, DeadLetterSink, DecisionMessage, InsertOutcome, UsageStore } from './ports.ts'

/** A partition's records as they came in one fetch, with what the consumer may do about them. */
export interface Batch {
  readonly topic: string
  readonly partition: number
  readonly messages: readonly DecisionMessage[]
  heartbeat(): Promise<void>
  commit(nextOffset: string): Promise<void>
}

export interface MeterCounters {
  rows: number
  batches: number
  deadLetters: number
  insertRetries: number
}

/** First and longest pause between attempts while ClickHouse is away. Well below the session timeout of 30 s. */
const retryFirstMs = 200
const retryMaxMs = 5_000

/** Names the rows exactly: these offsets of this partition, less those that became dead letters. */
const blockToken = ({ topic, partition, messages }: Batch, left: number) =>
  `${topic}:${partition}:${messages[0]?.offset}-${messages.at(-1)?.offset}${left > 0 ? `:without-${left}` : ''}`

/** Works one batch off, whole. Throws only what the consumer must know: a lost partition. */
export type MeterBatch = (batch: Batch) => Promise<void>

export function createMeterBatch(options: {
  readonly store: UsageStore
  readonly deadLetters: DeadLetterSink
  readonly counters: MeterCounters
  readonly log: Logger
  /** Waits, in a test at once. */
  readonly pause: (ms: number) => Promise<void>
}): MeterBatch {
  const { store, deadLetters, counters, log, pause } = options

  /** Tries until ClickHouse has answered; nothing is lost meanwhile, Kafka keeps what waits behind. */
  const insertPatiently = async (batch: Batch, lines: Buffer, rows: number, left: number): Promise<InsertOutcome> => {
    const block = { lines, rows, token: blockToken(batch, left) }
    for (let pauseMs = retryFirstMs; ; pauseMs = Math.min(pauseMs * 2, retryMaxMs)) {
      const outcome = await store.insert(block)
      if (outcome.kind !== 'unavailable') return outcome
      counters.insertRetries += 1
      log.warn({ err: outcome.error, partition: batch.partition, rows, pauseMs }, 'insert failed, trying again')
      await pause(pauseMs)
      await batch.heartbeat()
    }
  }

  /** ClickHouse refused the block for its data: halves it until the bad records stand alone. */
  const insertApart = async (batch: Batch, messages: readonly DecisionMessage[]): Promise<DeadLetter[]> => {
    const { lines, rows, refused } = passThrough(batch.partition, messages)
    if (rows === 0) return [...refused]
    const outcome = await insertPatiently({ ...batch, messages }, lines, rows, refused.length)
    if (outcome.kind !== 'unreadable') return [...refused]
    if (messages.length === 1) return messages.map((message) => ({ message, reason: outcome.error.message }))
    await batch.heartbeat()
    const middle = messages.length >> 1
    const first = await insertApart(batch, messages.slice(0, middle))
    return [...first, ...(await insertApart(batch, messages.slice(middle)))]
  }

  return async function meterBatch(batch) {
    const last = batch.messages.at(-1)
    if (last === undefined) return
    // 1. Insert. A crash after it hands the batch over again: counted twice until numbers and declared ranges rule that out.
    const refused = await insertApart(batch, batch.messages)
    // 2. Dead letters. A crash after this sends a letter twice; sent after the commit, a crash before it would lose one.
    if (refused.length > 0) {
      await deadLetters.send(batch.partition, refused)
      counters.deadLetters += refused.length
      log.error({ partition: batch.partition, letters: refused.length, why: refused[0]?.reason }, 'dead letters')
    }
    // 3. Commit. If it fails the batch comes again.
    await batch.commit(String(BigInt(last.offset) + 1n))
    counters.rows += batch.messages.length - refused.length
    counters.batches += 1
  }
}
