import { randomUUID } from 'node:crypto'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { linesOf } from './json-lines.ts'
import type { MarkRow, UsageStore } from './ports.ts'

/** An insert of few rows costs ClickHouse as much as one of thousands; usage is told to be complete so much later. */
const gatherMs = 1_000

/** Journals times partitions, of a second; beyond it the oldest go, and the next second has newer ones. */
const marksMax = 10_000

/**
 * Writes marks of all partitions together, once a second. One that is lost with the process, or that ClickHouse does not take, is
 * followed by another within a second; only the last mark of a journal is not, and is none of these.
 */
export interface MarkGatherer {
  /** Rows whose records are all inserted. */
  add(marks: readonly MarkRow[]): void
  /** Writes what is left. */
  close(): Promise<void>
}

export function createMarkGatherer(options: {
  readonly store: Pick<UsageStore, 'insert'>
  readonly log: Logger
  readonly crash: CrashPoint
}): MarkGatherer {
  const { store, log, crash } = options
  let gathered = new Map<string, MarkRow>()
  let timer: NodeJS.Timeout | undefined

  const write = async () => {
    timer = undefined
    const rows = [...gathered.values()]
    gathered = new Map()
    if (rows.length === 0) return
    const block = { table: 'marks', lines: linesOf(rows), token: `marks:${randomUUID()}` }
    const outcome = await store.insert(block, AbortSignal.timeout(gatherMs * 10))
    if (outcome.kind !== 'inserted') log.warn({ err: outcome.error }, 'marks were not written; newer ones follow')
    crash('marks')
  }

  return {
    add(marks) {
      for (const mark of marks) {
        const key = `${mark.topic} ${mark.partition} ${mark.journal}`
        gathered.delete(key)
        gathered.set(key, mark)
      }
      for (const key of gathered.keys()) {
        if (gathered.size <= marksMax) break
        gathered.delete(key)
      }
      if (gathered.size > 0) timer ??= setTimeout(() => void write(), gatherMs)
    },
    async close() {
      clearTimeout(timer)
      await write()
    },
  }
}
