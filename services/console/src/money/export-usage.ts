import { exportStart } from '@weir/clickhouse/billing-queries.ts'
import { type ExportCursor, readExportCursor, writeExportCursor } from '@weir/core/prices/export-cursor.ts'
import type { PriceList } from '@weir/core/prices/price-list.ts'
import { iso } from '@weir/core/prices/priced-month.ts'
import { type RatedUsage, rate, type UsedHour } from '@weir/core/prices/rated-usage.ts'
import { readTime } from '@weir/core/usage/read-parameters.ts'
import { type Policy, pricesOf } from '@weir/policy/policy.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { cursorInvalid, readCursor, writeCursor } from '../http/cursor.ts'
import { answerProblem, policyUnread, usageUnavailable } from '../http/problems.ts'
import { orUnavailable } from '../http/question-failure.ts'
import { answer, object, operation, type PageQuery, pageQuery, problems, text, textOrNull } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { completeness, shownSilent } from '../usage/usage-schemas.ts'
import { formerPrices } from './former-prices.ts'

const path = '/v1/usage/export'
const hourMs = 3_600_000

const ratedUsage = object({
  id: text('UUID; of a row that comes again the same'),
  subject: text('whose'),
  hour: text('RFC 3339: first instant of the hour in which the usage was'),
  correction: { type: 'boolean', description: 'the hour was exported before; this comes in addition' },
  prices: text('name of the price list'),
  line: text('name of its line'),
  unit: { enum: ['units', 'decisions'], description: 'what the line counts' },
  quantity: text('a whole number, of a correction perhaps below 0'),
})

const exportParts = {
  from: text('RFC 3339: first hour of the first export'),
  to: text('RFC 3339: end of the last whole hour'),
  cursor: text('`since` of the next export, and `until` of this one again'),
  ...completeness,
  unpriced: {
    ...object({ units: text('a whole number'), decisions: text('a whole number') }),
    description: 'on this page, what no line of a price list counts',
  },
  items: { type: 'array', items: ratedUsage },
  next: textOrNull('`after` of the next page; null on the last. Ask for it with `until`, the cursor of this page'),
}

interface Asked extends PageQuery {
  readonly from?: string
  readonly since?: string
  readonly until?: string
}

/** Where an export begins, and where it ends if that is known; a text says what is wrong. */
function readAsked({ from, since: sinceText, until: untilText }: Asked, nowMs: number) {
  const since = sinceText === undefined ? undefined : readExportCursor(sinceText)
  const until = untilText === undefined ? undefined : readExportCursor(untilText)
  if (sinceText !== undefined && since === undefined) return '`since` is no cursor of an export'
  if (untilText !== undefined && until === undefined) return '`until` is no cursor of an export'
  const known = until ?? since
  if (known !== undefined) {
    if (from !== undefined) return '`from` is of a first export: leave it out with `since` or `until`'
    const isBehind = since !== undefined && (known.fromMs !== since.fromMs || known.toMs < since.toMs)
    return isBehind
      ? '`until` is of another export than `since`, or of one before'
      : { since, until, fromMs: known.fromMs }
  }
  if (from === undefined) return 'needs `from`, or `since`: the cursor of the export before'
  const wrong: string[] = []
  const readMs = readTime('from', from, { timeZone: 'UTC', nowMs }, wrong)
  if (readMs === undefined) return wrong.join('; ')
  const fromMs = Math.floor(readMs / hourMs) * hourMs
  return fromMs === readMs || from.startsWith('now') ? { since, until, fromMs } : '`from` must be a full hour of UTC'
}

/** The price lists of all these subjects, in force or as they were when the subject was deleted. */
async function listsOf(
  hours: readonly UsedHour[],
  policy: Policy,
  readFormerPolicies: Ports['exports']['readFormerPolicies'],
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
export function registerUsageExport(app: FastifyInstance, ports: Ports): void {
  const { askExport, readCountedOffsets, readFormerPolicies } = ports.exports
  app.get<{ readonly Querystring: Asked }>(
    path,
    operation('billing', 'usage', 'Usage of whole hours by line of the price list, for billing systems', {
      query: {
        ...pageQuery,
        from: text('first hour of a first export: RFC 3339, a date, or now-24h'),
        since: text('cursor of the export before'),
        until: text('cursor of this export, for its next page, or for the same rows again'),
      },
      response: { 200: answer('A page of it', object(exportParts)), ...problems(422, 503, 504) },
    }),
    orUnavailable(
      'usage could not be exported',
      usageUnavailable('ClickHouse did not answer. Ask again with the same cursors.'),
    )(async ({ query, by, reach }, reply) => {
      const { state } = ports.policy
      if (state === undefined) return answerProblem(reply, policyUnread)
      const asked = readAsked(query, ports.clock.nowMs())
      if (typeof asked === 'string') return answerProblem(reply, badRequest(asked))
      const { since, fromMs } = asked
      const { after: afterText, limit: rowsMax } = query
      const ownerOf = (end = '') => ({ path, given: { since: query.since ?? '', until: end }, by, reach })
      const place = afterText === undefined ? undefined : readCursor(afterText, ownerOf(query.until))?.place
      if (afterText !== undefined && place === undefined) return answerProblem(reply, cursorInvalid)
      // First: the records that it promises are then among those that the offsets count.
      const { completeThroughMs = 0, silent } = await ports.askCompleteness('decisions')
      const toMs = Math.max(since?.toMs ?? fromMs, Math.floor(completeThroughMs / hourMs) * hourMs)
      const start = exportStart(since, { fromMs, toMs })
      const until: ExportCursor = asked.until ?? { fromMs, toMs, counted: await readCountedOffsets(start) }
      const [subject, hour] = place ?? []
      const after = subject === undefined ? undefined : { subject, hourMs: Number(hour) }
      const hours = await askExport({ since, until, after, rowsMax })
      const last = hours.reduce((rows, { usage }) => rows + usage.length, 0) < rowsMax ? undefined : hours.at(-1)
      const cursor = writeExportCursor(until)
      const next = last && writeCursor(ownerOf(cursor), { atMs: 0, place: [last.subject, String(last.hourMs)] })
      const correctionOf = (ms: number) => (since !== undefined && ms < since.toMs ? query.since : undefined)
      return {
        from: iso(until.fromMs),
        to: iso(until.toMs),
        cursor,
        complete_through: completeThroughMs === 0 ? null : iso(completeThroughMs),
        silent: shownSilent(silent, reach),
        ...rateAll(hours, await listsOf(hours, state.policy, readFormerPolicies), correctionOf),
        next: next ?? null,
      }
    }),
  )
}
