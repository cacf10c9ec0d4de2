import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type BackoffBounds, backoffMs } from '@weir/runtime/backoff.ts'
import type { ClickHouseClient } from '../connect.ts'
import { insertBlock, queryIdOf } from '../insert.ts'
import { readRows } from '../read-rows.ts'

/** Who may end a repair, and when. */
export interface RepairOptions {
  /** Ends the statement under way; the server ends it too. */
  readonly signal?: AbortSignal
  /** True once another process owns the partition: from then on this repair writes nothing. */
  readonly isFenced?: () => boolean
}

/**
 * The random half keeps processes that repair the same sums out of step; the longest leaves several attempts in half a
 * minute.
 */
const pauses: BackoffBounds = { firstMs: 200, maxMs: 6_400 }

/**
 * The statements of one repair. All that it writes runs under query ids that begin with the repair's name, so that the
 * next process that repairs the same finds it at work (`isInsertRunning`).
 */
export class RepairSession {
  readonly client: ClickHouseClient
  readonly #name: string
  readonly #options: RepairOptions

  /** `name`: letters, digits and `:._-`; for a block its deduplication token. */
  constructor(client: ClickHouseClient, name: string, options: RepairOptions = {}) {
    this.client = client
    this.#name = name
    this.#options = options
  }

  async query<Row>(query: string, params: Record<string, unknown> = {}): Promise<Row[]> {
    return readRows<Row>(this.client, query, params, this.#abort())
  }

  async command(query: string, params: Record<string, unknown> = {}): Promise<void> {
    this.#refuseIfFenced()
    const query_id = `${queryIdOf(this.#name)}:repair:${randomUUID()}`
    await this.client.command({ query, query_params: params, query_id, ...this.#abort() })
  }

  /**
   * Inserts lines of JSON objects. `part` tells this insert from the others of the repair; the same part again is
   * dropped.
   */
  async insert(table: string, lines: Buffer, part: string): Promise<void> {
    this.#refuseIfFenced()
    const { signal } = this.#options
    const request = { table, lines, dedupToken: `${this.#name}:repair:${part}` }
    await insertBlock(this.client, signal === undefined ? request : { ...request, signal })
  }

  /** Pauses before an attempt, longer after each one that has written something. */
  async pause(writes: number): Promise<void> {
    const { signal } = this.#options
    await delay(backoffMs(writes + 1, pauses), undefined, signal === undefined ? {} : { signal })
  }

  #refuseIfFenced(): void {
    if (this.#options.isFenced?.() === true) throw new Error(`another process owns ${this.#name} now`)
  }

  #abort() {
    const { signal } = this.#options
    return signal === undefined ? {} : { abort_signal: signal }
  }
}
