import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { type ChangeRecordV1, parsePolicyRecord } from '@weir/contracts/policy.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { FollowLoop } from '@weir/kafka/follow-loop.ts'
import { isMissingTopic, reasonOf } from '@weir/kafka/kafka-errors.ts'
import { type LogRecord, openPartitionLog, type PartitionLog } from '@weir/kafka/partition-log.ts'
import { isOvertaken, type PolicyCheckpoint } from '@weir/policy-feed/assemble-transactions.ts'
import { insertHistory, type PolicyHistoryRow, readHistoryEnd } from './history-queries.ts'
import { changeColumns, changeRow, entityRow } from './history-rows.ts'

/** What the history is copied from and to. */
interface HistoryOptions extends KafkaOptions {
  readonly clickhouse: ClickHouseClient
}

/** Rows of one change that are held until its end is read, some megabytes; a longer change is read twice. */
const heldRowsMax = 5_000

type BareRow = Pick<PolicyHistoryRow, 'offset' | 'kind' | 'name' | 'body'>

/** A change as far as it was read. */
interface OpenChange {
  /** Offset of its first record. */
  readonly from: bigint
  /** Undefined once they are too many to be held. */
  rows: BareRow[] | undefined
}

/**
 * Copies the policy topic into `weir.policy_history`, for as long as the process lives. It goes on behind the last row
 * that is there, so that the topic itself is the queue while ClickHouse is down. A crash anywhere repeats rows, and a
 * repeated row is one row. Changes that no process took over leave only the row that says so.
 */
export class PolicyHistory {
  readonly #options: HistoryOptions
  readonly #loop: FollowLoop
  #log: PartitionLog | undefined
  /** Why it does not follow; undefined while it does. */
  problem: string | undefined

  constructor(options: HistoryOptions) {
    this.#options = options
    this.#loop = new FollowLoop({
      follow: () => this.#follow(),
      onFailure: (...failure) => this.#onFailure(...failure),
    })
    void this.#loop.run()
  }

  /** Nothing is inserted any more. */
  close(): void {
    this.#loop.close()
    void this.#log?.close()
  }

  #onFailure(error: unknown, failures: number, isLogged: boolean): void {
    // Before the first change there is nothing to copy.
    this.problem = isMissingTopic(error) ? undefined : `changes are not copied to ClickHouse: ${reasonOf(error)}`
    if (this.problem === undefined || !isLogged) return
    this.#options.log.warn({ err: error, failures }, 'policy history not followed, retrying')
  }

  /** One connection, until it breaks or the history is closed. */
  async #follow(): Promise<void> {
    const log = await openPartitionLog(this.#options, topics.policy)
    this.#log = log
    try {
      const topic = { topic: topics.policy, topic_id: await log.topicId() }
      const { next, lastChange } = await readHistoryEnd(this.#options.clickhouse, topic)
      const { first } = await log.range()
      // What the topic has compacted away since, or what was copied before.
      let position = first
      if (next > first) position = next
      let last: PolicyCheckpoint | undefined = lastChange
      let open: OpenChange | undefined
      while (!this.#loop.isStopping) {
        const { records, next: after } = await log.read(position)
        if (this.#loop.isStopping) return
        const ready: PolicyHistoryRow[] = []
        for (const record of records) {
          open ??= { from: record.offset, rows: [] }
          const ended = this.#add(open, record)
          if (ended === undefined) continue
          const checkpoint = { offset: record.offset, id: ended.id }
          const overtaken = isOvertaken({ audit: ended, changes: [], resets: [], checkpoint }, last)
          const columns = { ...topic, ...changeColumns(ended.id, ended) }
          if (!overtaken && open.rows === undefined) await this.#copyAgain(log, open.from, record.offset, columns)
          const held = overtaken ? [] : (open.rows ?? [])
          const end = { offset: String(record.offset), ...changeRow(ended.id, ended, overtaken) }
          for (const row of [...held, end]) ready.push({ ...columns, ...row })
          last = checkpoint
          open = undefined
        }
        await insertHistory(this.#options.clickhouse, ready)
        this.#loop.succeeded()
        this.problem = undefined
        position = after
      }
    } finally {
      await log.close()
    }
  }

  /** Adds a record to the change that is read; returns the audit record that ends it. */
  #add(open: OpenChange, { offset, key, value }: LogRecord): (ChangeRecordV1 & { readonly id: string }) | undefined {
    const parsed = parsePolicyRecord(key, value)
    if (parsed.kind === 'change') return { id: parsed.id, ...parsed.change }
    const row = parsed.kind === 'entity' ? entityRow(parsed.change) : undefined
    if (row === undefined || open.rows === undefined) return undefined
    open.rows.push({ offset: String(offset), ...row })
    if (open.rows.length > heldRowsMax) open.rows = undefined
    return undefined
  }

  /** Copies the entities of a change that is too long to be held, now that its end is known. */
  async #copyAgain(
    log: PartitionLog,
    from: bigint,
    end: bigint,
    columns: Omit<PolicyHistoryRow, keyof BareRow>,
  ): Promise<void> {
    for (let position = from; position < end && !this.#loop.isStopping; ) {
      const { records, next } = await log.read(position)
      const rows: PolicyHistoryRow[] = []
      for (const { offset, key, value } of records) {
        const parsed = offset < end ? parsePolicyRecord(key, value) : undefined
        const row = parsed?.kind === 'entity' ? entityRow(parsed.change) : undefined
        if (row !== undefined) rows.push({ ...columns, offset: String(offset), ...row })
      }
      await insertHistory(this.#options.clickhouse, rows)
      position = next
    }
  }
}
