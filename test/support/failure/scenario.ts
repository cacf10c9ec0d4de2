import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { readMetric } from '../read-metric.ts'
import { createSeededRandom, type SeededRandom } from '../seeded-random.ts'
import { type Counter, compareWhenThere, openCounter } from './count.ts'
import { type RunningLoad, startLoad } from './drive-load.ts'
import { answersById, type LedgerEntry, unpackId } from './ledger.ts'
import type { Stack } from './stack.ts'
import { untilSettled } from './until-settled.ts'

/** One line of the table in docs/reliability.md. */
export interface FailureRow {
  readonly fault: string
  /** Answers that bear an id. */
  readonly answered: number
  /** Answers without one: what was decided could not be recorded. */
  readonly unrecorded: number
  /** Decisions that gaps count; less than `unrecorded` where a stalled disk took some after all. */
  readonly gaps: number
  /** Requests whose answer the fault cut off, and whose decision is recorded, or in a gap, nevertheless. */
  readonly cutOff: number
  /** Answers without an id that nothing counts: of a stall of the disk that a kill ended. */
  readonly uncounted: number
  /** Answers whose id is not in the raw table, or with a smaller count. */
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

const rowsFile = join(projectRoot, '.weir', 'tests', 'failure-table.jsonl')

function keepRow(row: FailureRow): void {
  mkdirSync(join(projectRoot, '.weir', 'tests'), { recursive: true })
  appendFileSync(rowsFile, `${JSON.stringify(row)}\n`)
  const { fault, ...figures } = row
  const { answered, unrecorded, cutOff, raw, gaps, uncounted } = row
  const isEqual = answered + unrecorded + cutOff === raw + gaps + uncounted
  process.stdout.write(
    `  ${fault}: ${JSON.stringify(figures)}
  answers with and without an id, and cut off = raw + weir.gaps (+ uncounted in a stall that a kill ended):
  ${answered} + ${unrecorded} + ${cutOff} = ${raw} + ${gaps} (+ ${uncounted}): ${isEqual}\n`,
  )
}

/** At most so many are said one by one. */
const saidMax = 50

function sayMissing(
  ledger: readonly LedgerEntry[],
  missing: ReadonlyMap<string, number>,
  ageOf: (atMs: number) => number,
): void {
  const byId = new Map(ledger.map((entry) => [entry.id, entry]))
  for (const [id, short] of [...missing].slice(0, saidMax)) {
    const { allowed, reason, atMs = 0 } = byId.get(id) ?? {}
    const age = (ageOf(atMs) / 1_000).toFixed(1)
    process.stdout.write(`  missing: ${unpackId(id)}, ${short} short, allowed ${allowed}, ${reason}, ${age} s old\n`)
  }
}

function sayUnrecorded(ledger: readonly LedgerEntry[]): void {
  for (const { id, atMs, status, reason } of ledger) {
    if (id === '')
      process.stdout.write(`  without an id: ${status} ${reason} ${(atMs / 1_000).toFixed(3)} s after the start\n`)
  }
}

/** What names a stall. The metrics begin again with each process. */
async function sayJournal(stack: Stack): Promise<void> {
  const metrics = ['slow_writes', 'failed_writes', 'gaps'].map((name) => `weir_journal_${name}_total`)
  for (const name of stack.names.filter((one) => one.startsWith('ingress'))) {
    const values = await Promise.all(
      metrics.map(async (metric) => `${metric} ${await readMetric(stack.opsAddress(name), metric).catch(() => '?')}`),
    )
    const log = readFileSync(join(stack.dir, 'logs', `${name}.log`), 'utf8')
    const troubles = log.split('the journal could not be written').length - 1
    process.stdout.write(
      `  ${name}: ${values.join(', ')}; said ${troubles} times that the journal could not be written\n`,
    )
  }
}

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((all, one) => all + one, 0)

/**
 * Loads the stack, lets the fault strike, waits until everything is worked off, and counts. `strike` resolves when its
 * fault is over and what it broke was started again.
 */
export async function playScenario(
  stack: Stack,
  scenario: {
    readonly fault: string
    readonly perSecond: number
    /** How far back by the clock of the ingress its decisions may be dated. */
    readonly sinceMs?: number
    readonly strike: (scene: Scene) => Promise<void>
  },
): Promise<Played> {
  const random = createSeededRandom()
  process.stdout.write(`  ${scenario.fault}: seed ${random.seed}\n`)
  const counter = openCounter(stack.addresses.clickhouse)
  const before = (await counter.rawTotal()) ?? 0
  const beforeRollups = await counter.rollupTotals()
  const [repeatedBefore, holesBefore] = [await counter.repeatedRows(), await counter.holes()]
  const gapsBefore = await counter.decisionsInGaps()
  const sinceTs = formatTs(Date.now() - (scenario.sinceMs ?? 1_000))
  const load = startLoad(stack, scenario.perSecond)
  let isStopped = false
  try {
    await load.until('warm', ({ answered }) => answered >= warmAnswers, 60_000)
    await scenario.strike({ stack, load, random })
    const overAtMs = performance.now()
    const recoverSeconds = await untilRecovered({ load, counter, before }, overAtMs)
    const ledger = await load.stop()
    isStopped = true
    const stoppedMs = performance.now()
    await untilSettled(stack)

    const compared = await compareWhenThere(counter, answersById(ledger), sinceTs)
    const ageOf = (atMs: number) => load.progress.elapsedMs - atMs + performance.now() - stoppedMs
    sayMissing(ledger, compared.missing, ageOf)
    const unrecorded = ledger.filter(({ id }) => id === '').length
    const answered = ledger.length - unrecorded
    const raw = ((await counter.rawTotal()) ?? 0) - before
    const gaps = (await counter.decisionsInGaps()) - gapsBefore
    const rest = raw + gaps - answered - unrecorded
    const { cutOff } = load.progress
    const after = await counter.rollupTotals()
    const row: FailureRow = {
      ...{ fault: scenario.fault, answered, unrecorded, gaps, raw, recoverSeconds },
      cutOff: Math.max(0, Math.min(rest, cutOff)),
      uncounted: Math.max(0, -rest),
      missing: sum(compared.missing.values()),
      rollups: Object.fromEntries(Object.entries(after).map(([name, n]) => [name, n - (beforeRollups[name] ?? 0)])),
      rollupDifferences: await counter.rollupDifferences(),
      // What is beyond the ledger and was not cut off either was counted and never asked for.
      duplicates: Math.max(
        ...[compared.repeated, (await counter.repeatedRows()) - repeatedBefore],
        ...[rest - cutOff, compared.beyond - cutOff - unrecorded],
      ),
      holes: (await counter.holes()) - holesBefore,
    }
    if (row.uncounted > 0) sayUnrecorded(ledger)
    await sayJournal(stack)
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
): Promise<number> {
  const { elapsedMs } = load.progress
  await load.until('an answer by Redis after the fault', (now) => now.lastDecidedMs > elapsedMs, recoverDeadlineMs)
  const { answered, lastId } = load.progress
  const isThere = async () => {
    return ((await counter.rawTotal()) ?? 0) - before >= answered && (await counter.hasAny([lastId]))
  }
  const there = await waitUntil(isThere, { deadlineMs: recoverDeadlineMs, everyMs: 200 })
  // Not there: what is missing is counted and shown by the row.
  return there === true ? Math.round((performance.now() - overAtMs) / 100) / 10 : Number.NaN
}

/**
 * What every row must say: answered = raw and gaps, raw = every rollup, no id missing, nothing twice, no number left
 * out.
 */
export function exactly(row: FailureRow) {
  const uncounted = Math.min(row.uncounted, row.unrecorded)
  const total = row.answered + row.unrecorded + row.cutOff - row.gaps - uncounted
  return {
    ...row,
    uncounted,
    missing: 0,
    raw: total,
    rollups: Object.fromEntries(Object.keys(row.rollups).map((name) => [name, total])),
    ...{ rollupDifferences: 0, duplicates: 0, holes: 0 },
    // What was not worked off within the deadline is exact too late.
    recoverSeconds: Number.isNaN(row.recoverSeconds) ? recoverDeadlineMs / 1_000 : row.recoverSeconds,
  }
}
