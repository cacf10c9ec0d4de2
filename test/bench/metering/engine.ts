import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { readMigrations } from '@weir/clickhouse/migrate.ts'
import { loadNative, type Native, type NativeConnection } from '@weir/local-clickhouse/engine/native.ts'
import type { Tables } from '../../support/servers/tables.ts'
import type { TopicValues } from './full-topic.ts'

/** The blocks that metering has inserted, in the order in which it did, with the bytes that it sent. */
export async function readBlocks(tables: Tables, values: TopicValues): Promise<Buffer[]> {
  const blocks = await tables.rows<{ topic_id: string; partition: number; from: string; to: string }>(
    `SELECT topic_id, partition, from_offset AS from, to_offset AS to FROM weir.numbers
     WHERE journal != toUUID('00000000-0000-0000-0000-000000000000') ORDER BY received_at, from_offset`,
  )
  return blocks.map(({ topic_id, partition, from, to }) => {
    const lines = (values[partition] ?? []).slice(Number(from), Number(to) + 1)
    return Buffer.from(
      lines
        .map((line, at) => {
          const place = `,"topic_id":"${topic_id}","partition":${partition},"offset":${Number(from) + at}}\n`
          return line.slice(0, -1) + place
        })
        .join(''),
    )
  })
}

/** As packages/clickhouse pins them. */
const settings = [
  'async_insert=0',
  'insert_deduplicate=1',
  'deduplicate_blocks_in_dependent_materialized_views=1',
  'max_insert_threads=1',
  'max_insert_block_size=1048449',
  'min_insert_block_size_rows=1048449',
  'min_insert_block_size_bytes=268402944',
  'input_format_parallel_parsing=0',
  'input_format_skip_unknown_fields=1',
].join(', ')

/** The engine that the local ClickHouse is made of, in this process, without HTTP and Kafka. */
export class Engine {
  readonly #native: Native
  readonly #dir: string
  readonly #connections: readonly NativeConnection[]

  private constructor(native: Native, dir: string, count: number) {
    this.#native = native
    this.#dir = dir
    this.#connections = Array.from({ length: count }, () => native.CreateConnection(dir, []))
  }

  static async open(connections: number): Promise<Engine> {
    return new Engine(loadNative(), await mkdtemp(join(tmpdir(), 'weir-bench-engine-')), connections)
  }

  /** Inserts all blocks into empty tables of the migrations, so many at a time; gives seconds. */
  async insert(blocks: readonly Buffer[], atOnce: number): Promise<number> {
    const [first] = this.#connections
    if (first === undefined) throw new Error('an engine without a connection')
    const migrations = await readMigrations(join(projectRoot, 'infra/clickhouse/migrations'))
    const statements = ['DROP DATABASE IF EXISTS weir SYNC', 'CREATE DATABASE weir']
    for (const sql of [...statements, ...migrations.flatMap((one) => one.statements)]) {
      await this.#native.QueryAsyncConnection(first, sql, 'Null')
    }
    let next = 0
    const startedAt = performance.now()
    const work = async (connection: NativeConnection) => {
      for (let block = blocks[next++]; block !== undefined; block = blocks[next++]) {
        const sql = `INSERT INTO weir.decisions SETTINGS ${settings}, insert_deduplication_token='${randomUUID()}' FORMAT JSONEachRow`
        await this.#native.InsertRawAsyncConnection(connection, sql, block, false)
      }
    }
    await Promise.all(this.#connections.slice(0, atOnce).map(work))
    return (performance.now() - startedAt) / 1_000
  }

  async close(): Promise<void> {
    for (const connection of this.#connections) this.#native.CloseConnection(connection)
    await rm(this.#dir, { recursive: true, force: true })
  }
}
