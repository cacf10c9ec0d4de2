import { randomUUID } from 'node:crypto'
import { linesOf } from '@weir/clickhouse/insert.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { UsageStore, WatermarkRow } from './ports.ts'

/** An insert of few rows costs ClickHouse as much as one of thousands; usage is reported complete so much later. */
const gatherMs = 1_000

/** Journals times partitions, of a second; beyond it the oldest are dropped, and the next second has newer ones. */
const watermarksMax = 10_000

/**
 * In a cluster rows and watermarks reach a replica each in their own time, and one that is up to two seconds behind is
 * asked: a watermark is written so much later than its rows.
 */
export const clusterHoldMs = 5_000

/** What watermarks are written with. */
export interface WatermarkWriterOptions {
  readonly store: Pick<UsageStore, 'insert'>
  readonly log: Logger
  readonly crash: CrashPoint
  /** How long a watermark is held back after its rows are inserted. */
  readonly holdMs?: number
}

/**
 * Writes the watermarks (`mark` on the wire) of all partitions together, once a second. One that is lost with the
 * process, or that ClickHouse does not accept, is followed by another within a second. Only the last watermark of a
 * journal is not: it is written with its block, and never comes here.
 */
export class WatermarkWriter {
  readonly #options: WatermarkWriterOptions
  #gathered = new Map<string, WatermarkRow>()
  #timer: NodeJS.Timeout | undefined
  readonly #held = new Set<NodeJS.Timeout>()

  constructor(options: WatermarkWriterOptions) {
    this.#options = options
  }

  /** Adds watermarks whose records are all inserted. */
  add(watermarks: readonly WatermarkRow[]): void {
    for (const watermark of watermarks) {
      const key = `${watermark.topic} ${watermark.partition} ${watermark.journal}`
      this.#gathered.delete(key)
      this.#gathered.set(key, watermark)
    }
    for (const key of this.#gathered.keys()) {
      if (this.#gathered.size <= watermarksMax) break
      this.#gathered.delete(key)
    }
    if (this.#gathered.size > 0) this.#timer ??= setTimeout(() => this.#hold(), gatherMs)
  }

  /** Writes what is left; what has to be held back is followed by those of the next owner. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    for (const held of this.#held) clearTimeout(held)
    if (this.#options.holdMs === undefined) await this.#write(this.#take())
  }

  #take(): WatermarkRow[] {
    this.#timer = undefined
    const rows = [...this.#gathered.values()]
    this.#gathered = new Map()
    return rows
  }

  #hold(): void {
    const { holdMs } = this.#options
    const rows = this.#take()
    if (holdMs === undefined) return void this.#write(rows)
    const held = setTimeout(() => {
      this.#held.delete(held)
      void this.#write(rows)
    }, holdMs)
    this.#held.add(held)
  }

  async #write(rows: readonly WatermarkRow[]): Promise<void> {
    const { store, log, crash } = this.#options
    if (rows.length === 0) return
    const request = { table: 'marks', lines: linesOf(rows), dedupToken: `marks:${randomUUID()}` }
    const fault = await store.insert(request, AbortSignal.timeout(gatherMs * 10)).catch((error: unknown) => error)
    if (fault !== undefined) log.warn({ err: fault }, 'watermarks were not written; newer ones follow')
    crash('marks')
  }
}
