import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClickHouseClient } from '../connect.ts'
import { queryIdOf } from '../insert.ts'
import type { MendOptions } from './doubted-block.ts'

/** Before a look, on average; each time twice as long, to a bound that leaves several looks in half a minute. */
const [pauseFirstMs, pauseMaxMs] = [100, 3_200]

/**
 * What one block is mended by. All that it writes runs under the block's name, so that whoever gets the block next finds it at work;
 * and nothing is written any more for who has lost it.
 */
export class MendConnection {
  readonly client: ClickHouseClient
  readonly #token: string
  readonly #options: MendOptions

  constructor(client: ClickHouseClient, token: string, options: MendOptions) {
    this.client = client
    this.#token = token
    this.#options = options
  }

  async ask<Row>(query: string, params: Record<string, unknown> = {}): Promise<Row[]> {
    const answer = await this.client.query({ query, query_params: params, format: 'JSONEachRow', ...this.#aborted() })
    return answer.json<Row>()
  }

  async write(query: string, params: Record<string, unknown> = {}): Promise<void> {
    this.refuseIfStale()
    const query_id = `${queryIdOf(this.#token)}:mend:${randomUUID()}`
    await this.client.command({ query, query_params: params, query_id, ...this.#aborted() })
  }

  refuseIfStale(): void {
    if (this.#options.isStale?.() === true) throw new Error(`${this.#token} is somebody else's now`)
  }

  get signal(): AbortSignal | undefined {
    return this.#options.signal
  }

  /** As long as chance will have it, longer after each attempt: several who mend the same do not go on in step. */
  async pause(attempt: number): Promise<void> {
    const ms = Math.min(pauseMaxMs, pauseFirstMs * 2 ** attempt) * 2 * Math.random()
    await pause(ms, undefined, this.#options.signal === undefined ? {} : { signal: this.#options.signal })
  }

  #aborted() {
    const { signal } = this.#options
    return signal === undefined ? {} : { abort_signal: signal }
  }
}
