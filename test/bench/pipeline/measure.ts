import { readRows } from '@weir/clickhouse/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { delays, type Row, type Sight } from './delays.ts'
import { startPacedLoad } from './paced-load.ts'
import { measureStretch, type Stretch } from './sample.ts'
import type { Stack } from './stack.ts'

/** What a rate, or rest, took in one round. */
export interface Measured extends Stretch {
  /** Decisions a second that were asked for; 0 at rest. */
  readonly rate: number
  /** Why the stack did not keep the rate, as a sentence; undefined where it did. */
  readonly trouble: string | undefined
  /** From a record's first decision to the first look that saw it; undefined at rest, and where one was never seen. */
  readonly delayMs: { readonly p50: number; readonly p99: number } | undefined
}

/** A stack that has just started still compiles, and its tables merge what the start wrote. */
const restAfterMs = 15_000
/** Until then connections, compilers and batches find their pace. */
const warmUpMs = 5_000
/** About 1,500 ticks of the kernel's clock of a core: a tick is then less than a percent of what any rate uses. */
const stretchMs = 15_000
const looksMs = 8_000
const lookEveryMs = 50
/** A stack that keeps its rate has all of it within 2 s. */
const seenDeadlineMs = 30_000
/** Less than this share of what was asked for is a rate that was not kept. */
const keptShare = 0.98

/** What is measured is time itself: the stack is left alone for as long. */
function pass(ms: number): Promise<unknown> {
  const endMs = performance.now() + ms
  return waitUntil(() => performance.now() >= endMs, { deadlineMs: ms, everyMs: 100 })
}

/** The stack with nothing to do. */
export async function measureRest(stack: Stack): Promise<Measured> {
  await pass(restAfterMs)
  const stretch = await measureStretch(stack, () => pass(stretchMs))
  return { ...stretch, rate: 0, trouble: undefined, delayMs: undefined }
}

/** The stack at so many decisions a second. Looks for rows come after what is counted, as they cost ClickHouse CPU. */
export async function measureRate(stack: Stack, rate: number): Promise<Measured> {
  const since = Date.now()
  const load = await startPacedLoad(stack.api, stack.adminToken, rate, stack.subjects)
  await pass(warmUpMs)
  const stretch = await measureStretch(stack, () => pass(stretchMs), load.answered)
  const ask = <Answer>(query: string, from: number) => readRows<Answer>(stack.clickhouse, query, { from })
  const where = "subject LIKE 'customer-%' AND ts >= fromUnixTimestamp64Milli({from:Int64})"
  const sights: Sight[] = []
  let [records, counted] = [0, 0]
  const look = async () => {
    const seen = await ask<{ partition: number; last: string; records: string; n: string }>(
      `SELECT partition, max(offset) AS last, count() AS records, sum(count) AS n FROM weir.decisions WHERE ${where} GROUP BY partition`,
      since,
    )
    sights.push({ atMs: Date.now(), lastOffset: new Map(seen.map(({ partition, last }) => [partition, Number(last)])) })
    counted = seen.reduce((sum, { n }) => sum + Number(n), 0)
    records = seen.reduce((sum, one) => sum + Number(one.records), 0)
  }
  const looksSince = Date.now()
  await waitUntil(look, { deadlineMs: looksMs, everyMs: lookEveryMs })
  const refused = await load.stop()
  const isAllSeen = await waitUntil(
    async () => {
      await look()
      return counted >= load.answered()
    },
    { deadlineMs: seenDeadlineMs, everyMs: lookEveryMs },
  )
  // A refused check is recorded too.
  if (counted > load.begun()) throw new Error(`${counted} of ${load.begun()} decisions: some were counted twice`)
  if (!stack.coalesce && records !== counted) throw new Error(`${records} rows of ${counted} decisions`)
  const perSecond = stretch.decisions / stretch.seconds
  const slow = perSecond < rate * keptShare ? `${Math.round(perSecond)} a second were answered` : undefined
  const unseen = isAllSeen === true ? undefined : `only ${counted} were queryable ${seenDeadlineMs / 1_000} s later`
  const troubles = [slow, refused, unseen].filter((one) => one !== undefined)
  const trouble = troubles.length === 0 ? undefined : troubles.join('; ')
  if (isAllSeen !== true) return { ...stretch, rate, trouble, delayMs: undefined }
  const times = 'SELECT partition, offset, toUnixTimestamp64Milli(ts) AS ts_ms FROM weir.decisions'
  const sorted = delays(await ask<Row>(`${times} WHERE ${where}`, looksSince), sights)
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
  return { ...stretch, rate, trouble, delayMs: { p50: at(0.5), p99: at(0.99) } }
}
