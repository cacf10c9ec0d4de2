import { exportUsage } from '@weir/api/money.ts'
import type { QueryOf } from '@weir/api/operation.ts'
import { readTime } from '@weir/api/query/read-parameters.ts'
import { type ExportCursor, readExportCursor, writeExportCursor } from '@weir/core/prices/export-cursor.ts'
import type { PriceList } from '@weir/core/prices/price-list.ts'
import { iso } from '@weir/core/prices/priced-month.ts'
import { type RatedUsage, rate, type UsedHour } from '@weir/core/prices/rated-usage.ts'
import { type Policy, pricesOf } from '@weir/policy/policy.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { cursorInvalid, readCursor, writeCursor } from '../http/cursor.ts'
import { answerProblem, policyUnread, usageUnavailable } from '../http/problems.ts'
import { serveQuestion } from '../http/question-failure.ts'
import type { Sources } from '../sources.ts'
import { shownCompleteness } from '../usage/completeness.ts'
import { exportStart } from './billing-queries.ts'
import { formerPrices } from './former-prices.ts'
import type { MoneySource } from './money-source.ts'

const { path } = exportUsage
const hourMs = 3_600_000
const unanswered = {
  what: 'usage could not be exported',
  problem: usageUnavailable('ClickHouse did not respond. Try again with the same cursors.'),
}

/** Where an export begins, and where it ends if that is known; a text says what is wrong. */
function readAsked({ from, since: sinceText, until: untilText }: QueryOf<typeof exportUsage>, nowMs: number) {
  const since = sinceText === undefined ? undefined : readExportCursor(sinceText)
  const until = untilText === undefined ? undefined : readExportCursor(untilText)
  if (sinceText !== undefined && since === undefined) return '`since` is not an export cursor'
  if (untilText !== undefined && until === undefined) return '`until` is not an export cursor'
  const known = until ?? since
  if (known !== undefined) {
    if (from !== undefined) return '`from` is only for the first export: omit it with `since` or `until`'
    const isBehind = since !== undefined && (known.fromMs !== since.fromMs || known.toMs < since.toMs)
    return isBehind
      ? '`until` belongs to a different or an earlier export than `since`'
      : { since, until, fromMs: known.fromMs }
  }
  if (from === undefined) return 'needs `from` (first export) or `since` (the cursor of the previous export)'
  const wrong: string[] = []
  const readMs = readTime('from', from, { timeZone: 'UTC', nowMs }, wrong)
  if (readMs === undefined) return wrong.join('; ')
  const fromMs = Math.floor(readMs / hourMs) * hourMs
  return fromMs === readMs || from.startsWith('now') ? { since, until, fromMs } : '`from` must be a full hour in UTC'
}

/** The price lists of all these subjects, in force or as they were when the subject was deleted. */
async function listsOf(
  hours: readonly UsedHour[],
  policy: Policy,
  readFormerPolicies: MoneySource['readFormerPolicies'],
): Promise<(subject: string) => PriceList | undefined> {
  const unknown = [...new Set(hours.map(({ subject }) => subject))].filter(
    (id) => policy.subjects.get(id) === undefined,
  )
  const former = unknown.length === 0 ? undefined : formerPrices(await readFormerPolicies(unknown))
  return (id) => {
    const subject = policy.subjects.get(id)
    return subject === undefined ? former?.get(id) : pricesOf(policy, subject)
  }
}

/** Rates the hours; what no price list counts is summed. */
function rateAll(
  hours: readonly UsedHour[],
  listOf: (subject: string) => PriceList | undefined,
  correctionOf: (hourMs: number) => string | undefined,
) {
  const items: RatedUsage[] = []
  let [units, decisions] = [0n, 0n]
  for (const hour of hours) {
    const list = listOf(hour.subject)
    const rated = list === undefined ? undefined : rate(hour, list, correctionOf(hour.hourMs))
    items.push(...(rated?.rows ?? []))
    for (const one of rated === undefined ? hour.usage : [rated.unpriced]) {
      units += one.units
      decisions += one.decisions
    }
  }
  return { items, unpriced: { units: String(units), decisions: String(decisions) } }
}

/**
 * `GET /v1/usage/export`: usage of whole hours by line of the price list, for billing systems. All exports of a chain
 * of cursors together have every record that is counted once.
 */
export function registerUsageExport(app: FastifyInstance, sources: Sources): void {
  const { askExport, readCountedOffsets, readFormerPolicies } = sources.money
  serveQuestion(app, exportUsage, unanswered, async ({ query, by, reach }, reply) => {
    const { state } = sources.policy
    if (state === undefined) return answerProblem(reply, policyUnread)
    const asked = readAsked(query, sources.clock.nowMs())
    if (typeof asked === 'string') return answerProblem(reply, badRequest(asked))
    const { since, fromMs } = asked
    const { after: afterText, limit: rowsMax } = query
    const ownerOf = (end = '') => ({ path, given: { since: query.since ?? '', until: end }, by, reach })
    const position = afterText === undefined ? undefined : readCursor(afterText, ownerOf(query.until))?.position
    if (afterText !== undefined && position === undefined) return answerProblem(reply, cursorInvalid)
    // First: the records that it promises are then among those that the offsets count.
    const completeness = await sources.usage.askCompleteness('decisions')
    const { completeThroughMs = 0 } = completeness
    const toMs = Math.max(since?.toMs ?? fromMs, Math.floor(completeThroughMs / hourMs) * hourMs)
    const start = exportStart(since, { fromMs, toMs })
    const until: ExportCursor = asked.until ?? { fromMs, toMs, counted: await readCountedOffsets(start) }
    const [subject, hour] = position ?? []
    const after = subject === undefined ? undefined : { subject, hourMs: Number(hour) }
    const hours = await askExport({ since, until, after, rowsMax })
    const last = hours.reduce((rows, { usage }) => rows + usage.length, 0) < rowsMax ? undefined : hours.at(-1)
    const cursor = writeExportCursor(until)
    const next = last && writeCursor(ownerOf(cursor), { atMs: 0, position: [last.subject, String(last.hourMs)] })
    const correctionOf = (ms: number) => (since !== undefined && ms < since.toMs ? query.since : undefined)
    return {
      from: iso(until.fromMs),
      to: iso(until.toMs),
      cursor,
      ...shownCompleteness(completeness, reach),
      ...rateAll(hours, await listsOf(hours, state.policy, readFormerPolicies), correctionOf),
      next: next ?? null,
    }
  })
}
