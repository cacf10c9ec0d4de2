import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type BackoffBounds, backoffMs } from '@weir/runtime/backoff.ts'
import { catchUp } from '../catch-up.ts'
import { type ClickHouseClient, readRows } from '../connect.ts'
import { insertBlock, queryIdOf } from '../insert.ts'

/** What ends a repair early. */
export interface RepairOptions {
  /** Ends the statement under way; the server ends it too. */
  readonly signal?: AbortSignal
  /** True once another process owns the partition: from then on this repair writes nothing. */
  readonly isFenced?: () => boolean
}

/** The random half keeps processes that repair the same sums out of step; half a minute has several attempts. */
const pauses: BackoffBounds = { firstMs: 200, maxMs: 6_400 }

/**
 * The statements of one repair. All that it writes runs under query ids that begin with the repair's name, so that the
 * next process that repairs the same finds it at work (`isInsertRunning`).
 */
export class RepairSession {
  readonly client: ClickHouseClient
  readonly #name: string
  readonly #signal: AbortSignal
  readonly #isFenced: () => boolean

  /** `name`: letters, digits and `:._-`; for a block its deduplication token. */
  constructor(client: ClickHouseClient, name: string, options: RepairOptions = {}) {
    this.client = client
    this.#name = name
    this.#signal = options.signal ?? new AbortController().signal
    this.#isFenced = options.isFenced ?? (() => false)
  }

  /** Resolves when the server has all rows of these tables, or of all, that other replicas had when it was called. */
  async catchUp(tables?: readonly string[]): Promise<void> {
    if (this.client.cluster !== undefined) this.#refuseIfFenced()
    await catchUp(this.client, tables)
  }

  async query<Row>(query: string, params: Record<string, unknown> = {}): Promise<Row[]> {
    return readRows<Row>(this.client, query, params, { abort_signal: this.#signal })
  }

  async command(query: string, params: Record<string, unknown> = {}): Promise<void> {
    this.#refuseIfFenced()
    const query_id = `${queryIdOf(this.#name)}:repair:${randomUUID()}`
    await this.client.command({ query, query_params: params, query_id, abort_signal: this.#signal })
  }

  /** Inserts lines of JSON objects. `part` names this insert within the repair; the same part again is dropped. */
  async insert(table: string, lines: Buffer, part: string): Promise<void> {
    this.#refuseIfFenced()
    const dedupToken = `${this.#name}:repair:${part}`
    await insertBlock(this.client, { table, lines, dedupToken, signal: this.#signal })
  }

  /** Pauses before an attempt, longer after each one that has written something. */
  async pause(writes: number): Promise<void> {
    await delay(backoffMs(writes + 1, pauses), undefined, { signal: this.#signal })
  }

  #refuseIfFenced(): void {
    if (this.#isFenced()) throw new Error(`another process owns ${this.#name} now`)
  }
}
