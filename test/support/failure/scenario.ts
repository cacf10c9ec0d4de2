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
  /**
   * Decisions that gaps count; less than `unrecorded` where a stalled disk took some after all. Where records are lost
   * for good, the answers that had them, too, if `weir.gaps` names as many records as lost.
   */
  readonly gaps: number
  /** Requests whose answer the fault cut off, and whose decision is recorded, or in a gap, nevertheless. */
  readonly cutOff: number
  /** Answers without an id that nothing counts: of a stall of the disk that a kill ended. */
  readonly uncounted: number
  /** Answers whose id is not in the raw table, or with a smaller count; less those that `gaps` counts. */
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
  /** Ids of answers that are not in the raw table, packed as in the ledger, with how many answers each. */
  readonly missing: ReadonlyMap<string, number>
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

/** What ClickHouse holds at one time: a scenario is counted by what it adds. */
const takeCounts = async (counter: Counter) => ({
  raw: (await counter.rawTotal()) ?? 0,
  rollups: await counter.rollupTotals(),
  repeated: await counter.repeatedRows(),
  holes: await counter.holes(),
  gaps: await counter.decisionsInGaps(),
  lost: await counter.lostRecords(),
})

type Counts = Awaited<ReturnType<typeof takeCounts>>

/** By how much each count is larger than before. */
function addedCounts(before: Counts, after: Counts): Counts {
  const added = (name: Exclude<keyof Counts, 'rollups'>) => after[name] - before[name]
  const rollups = Object.entries(after.rollups).map(([name, n]) => [name, n - (before.rollups[name] ?? 0)])
  return {
    raw: added('raw'),
    repeated: added('repeated'),
    holes: added('holes'),
    gaps: added('gaps'),
    lost: added('lost'),
    rollups: Object.fromEntries(rollups),
  }
}

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
    /** Records are lost for good: each is to be named in `weir.gaps`. */
    readonly losesRecords?: boolean
    /** The load holds tokens and settles them, too, by a policy with holds. */
    readonly withHolds?: boolean
    readonly strike: (scene: Scene) => Promise<void>
  },
): Promise<Played> {
  const random = createSeededRandom()
  process.stdout.write(`  ${scenario.fault}: seed ${random.seed}\n`)
  const counter = openCounter(stack.addresses.clickhouse)
  const before = await takeCounts(counter)
  const { losesRecords = false } = scenario
  const sinceTs = formatTs(Date.now() - (scenario.sinceMs ?? 1_000))
  const load = startLoad(stack, scenario.perSecond, scenario.withHolds)
  let isStopped = false
  try {
    await load.until('warm', ({ answered }) => answered >= warmAnswers, 60_000)
    await scenario.strike({ stack, load, random })
    const overAtMs = performance.now()
    const recoverSeconds = await untilRecovered(load, counter, losesRecords ? undefined : before.raw, overAtMs)
    const ledger = await load.stop()
    isStopped = true
    const stoppedMs = performance.now()
    await untilSettled(stack)

    const deadlineMs = losesRecords ? 0 : undefined
    const compared = await compareWhenThere(counter, answersById(ledger), sinceTs, deadlineMs)
    const { missing } = compared
    const ageOf = (atMs: number) => load.progress.elapsedMs - atMs + performance.now() - stoppedMs
    if (!losesRecords) sayMissing(ledger, missing, ageOf)
    const { raw, rollups, repeated, holes, gaps: inGaps, lost } = addedCounts(before, await takeCounts(counter))
    const unrecorded = ledger.filter(({ id }) => id === '').length
    const answered = ledger.length - unrecorded
    // Every id is one record.
    const areNamed = losesRecords && lost === missing.size
    const [missingAnswers, gaps] = [sum(missing.values()), inGaps + (areNamed ? sum(missing.values()) : 0)]
    const rest = raw + gaps - answered - unrecorded
    const { cutOff } = load.progress
    const row: FailureRow = {
      fault: scenario.fault,
      answered,
      unrecorded,
      gaps,
      raw,
      recoverSeconds,
      rollups,
      cutOff: Math.max(0, Math.min(rest, cutOff)),
      uncounted: Math.max(0, -rest),
      missing: areNamed ? 0 : missingAnswers,
      rollupDifferences: await counter.rollupDifferences(),
      // What is beyond the ledger and was not cut off either was counted and never asked for.
      duplicates: Math.max(compared.repeated, repeated, rest - cutOff, compared.beyond - cutOff - unrecorded),
      holes: areNamed ? holes - lost : holes,
    }
    if (row.uncounted > 0) sayUnrecorded(ledger)
    await sayJournal(stack)
    keepRow(row)
    return { row, ledger, load, missing }
  } finally {
    if (!isStopped) await load.stop()
    await counter.close()
  }
}

/** `rawBefore`: decisions in the raw table before the load; undefined where not all of the load's will be there. */
async function untilRecovered(
  load: RunningLoad,
  counter: Counter,
  rawBefore: number | undefined,
  overAtMs: number,
): Promise<number> {
  const { elapsedMs } = load.progress
  await load.until('an answer by Redis after the fault', (now) => now.lastDecidedMs > elapsedMs, recoverDeadlineMs)
  const { answered, lastId } = load.progress
  const isThere = async () => {
    const hasAll = rawBefore === undefined || ((await counter.rawTotal()) ?? 0) - rawBefore >= answered
    return hasAll && (await counter.hasAny([lastId]))
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
    rollupDifferences: 0,
    duplicates: 0,
    holes: 0,
    // What was not worked off within the deadline is exact too late.
    recoverSeconds: Number.isNaN(row.recoverSeconds) ? recoverDeadlineMs / 1_000 : row.recoverSeconds,
  }
}
