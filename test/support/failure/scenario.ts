import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { formatTs } from '@weir/contracts/timestamp.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { createSeededRandom, type SeededRandom } from '../seeded-random.ts'
import { projectRoot } from '../weir-up.ts'
import { type Counter, compareWithRaw, openCounter } from './count.ts'
import { type RunningLoad, startLoad } from './drive-load.ts'
import { answersById, type LedgerEntry } from './ledger.ts'
import type { Stack } from './stack.ts'
import { untilSettled } from './until-settled.ts'

/** One line of the table in docs/reliability.md. */
export interface FailureRow {
  readonly fault: string
  /** Answers that the client kept, those left out that said they could not be recorded. */
  readonly answered: number
  /** Requests whose answer the fault cut off, and whose decision is recorded nevertheless. */
  readonly cutOff: number
  /** Refused because the journal was full, and recorded all the same. */
  readonly refused: number
  /** Answered decisions that are not in the raw table. */
  readonly missing: number
  readonly raw: number
  readonly rollups: Readonly<Record<string, number>>
  /** Buckets of rollups that differ from raw. */
  readonly rollupDifferences: number
  readonly duplicates: number
  readonly holes: number
  /** From the end of the fault until all that was answered by then, and one request after it, could be queried. */
  readonly recoverSeconds: number
}

export interface Scene {
  readonly stack: Stack
  readonly load: RunningLoad
  readonly random: SeededRandom
}

export interface Played {
  readonly row: FailureRow
  readonly ledger: readonly LedgerEntry[]
  readonly load: RunningLoad
}

/** A scenario begins when so many were answered: connections, code and caches are warm. */
const warmAnswers = 1_000
/** After the last fault all is worked off within this time. */
const recoverDeadlineMs = 180_000

/** Of those answered lately, so many are asked for where not all will come. */
const recentIds = 100

const rowsFile = join(projectRoot, '.weir', 'tests', 'failure-table.jsonl')

function keepRow(row: FailureRow): void {
  mkdirSync(join(projectRoot, '.weir', 'tests'), { recursive: true })
  appendFileSync(rowsFile, `${JSON.stringify(row)}\n`)
  const { fault, ...figures } = row
  process.stdout.write(`  ${fault}: ${JSON.stringify(figures)}\n`)
}

/**
 * Loads the stack, lets the fault strike, waits until everything is worked off, and counts. `strike` resolves when its fault is over
 * and what it broke was started again.
 */
export async function playScenario(
  stack: Stack,
  scenario: {
    readonly fault: string
    readonly perSecond: number
    /** How far back by the clock of the ingress its decisions may be dated. */
    readonly sinceMs?: number
    /** Not all that is answered will come: recovery is then one request that can be queried. */
    readonly isIncomplete?: boolean
    readonly strike: (scene: Scene) => Promise<void>
  },
): Promise<Played> {
  const random = createSeededRandom()
  process.stdout.write(`  ${scenario.fault}: seed ${random.seed}\n`)
  const counter = openCounter(stack.addresses.clickhouse)
  const before = (await counter.rawTotal()) ?? 0
  const beforeRollups = await counter.rollupTotals()
  const [repeatedBefore, holesBefore] = [await counter.repeatedRows(), await counter.holes()]
  const sinceTs = formatTs(Date.now() - (scenario.sinceMs ?? 1_000))
  const load = startLoad(stack, scenario.perSecond)
  let isStopped = false
  try {
    await load.until('warm', ({ answered }) => answered >= warmAnswers, 60_000)
    await scenario.strike({ stack, load, random })
    const overAtMs = performance.now()
    const recoverSeconds = await untilRecovered({ load, counter, before }, overAtMs, scenario.isIncomplete === true)
    const ledger = await load.stop()
    isStopped = true
    const counted = answersById(ledger)
    const answered = [...counted.answers.values()].reduce((sum, count) => sum + count, 0)
    await untilSettled({ kafka: stack.addresses.kafka, dir: stack.dir })

    const { missing, refused, beyond, repeated } = compareWithRaw(counted, await counter.rawById(sinceTs))
    const raw = ((await counter.rawTotal()) ?? 0) - before
    const after = await counter.rollupTotals()
    const row: FailureRow = {
      fault: scenario.fault,
      answered,
      cutOff: Math.min(beyond, load.progress.cutOff),
      missing,
      refused,
      raw,
      rollups: Object.fromEntries(Object.entries(after).map(([name, n]) => [name, n - (beforeRollups[name] ?? 0)])),
      rollupDifferences: await counter.rollupDifferences(),
      // What is beyond the ledger and was not cut off either was counted and never asked for.
      duplicates: Math.max(repeated, (await counter.repeatedRows()) - repeatedBefore, beyond - load.progress.cutOff),
      holes: (await counter.holes()) - holesBefore,
      recoverSeconds,
    }
    keepRow(row)
    return { row, ledger, load }
  } finally {
    if (!isStopped) await load.stop()
    await counter.close()
  }
}

async function untilRecovered(
  { load, counter, before }: { readonly load: RunningLoad; readonly counter: Counter; readonly before: number },
  overAtMs: number,
  isIncomplete: boolean,
): Promise<number> {
  const { elapsedMs } = load.progress
  await load.until('an answer by Redis after the fault', (now) => now.lastDecidedMs > elapsedMs, recoverDeadlineMs)
  const { answered, lastId } = load.progress
  const ids = new Set([lastId])
  const isThere = async () => {
    if (isIncomplete) return counter.hasAny([...ids.add(load.progress.lastId)].slice(-recentIds))
    return ((await counter.rawTotal()) ?? 0) - before >= answered && (await counter.hasAny([lastId]))
  }
  const there = await waitUntil(isThere, { deadlineMs: recoverDeadlineMs, everyMs: 200 })
  // Not there: what is missing is counted and shown by the row.
  return there === true ? Math.round((performance.now() - overAtMs) / 100) / 10 : Number.NaN
}

/** What every row must say: answered = raw = every rollup, nothing twice, no number left out. */
export function exactly(row: FailureRow) {
  const total = row.answered + row.cutOff + row.refused
  return {
    ...row,
    missing: 0,
    raw: total,
    rollups: Object.fromEntries(Object.keys(row.rollups).map((name) => [name, total])),
    ...{ rollupDifferences: 0, duplicates: 0, holes: 0 },
    // What was not worked off within the deadline is exact too late.
    recoverSeconds: Number.isNaN(row.recoverSeconds) ? recoverDeadlineMs / 1_000 : row.recoverSeconds,
  }
}
