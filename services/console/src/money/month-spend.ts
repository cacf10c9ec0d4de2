import { listSpend, type MonthSpend } from '@weir/api/money.ts'
import { readPeriod } from '@weir/api/query/read-period.ts'
import { type CsvColumns, csvOf } from '@weir/core/csv.ts'
import { formatAmount } from '@weir/core/prices/amount.ts'
import { forecastUsage, type Period } from '@weir/core/prices/forecast.ts'
import type { PriceList } from '@weir/core/prices/price-list.ts'
import { iso } from '@weir/core/prices/priced-month.ts'
import { type RouteUsage, totalOf } from '@weir/core/prices/quote.ts'
import type { Steps } from '@weir/core/steps.ts'
import { type Policy, pricesOf, type Subject } from '@weir/policy/policy.ts'
import { inSlices } from '@weir/policy-changes/change-policy.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem, policyUnread, usageUnavailable } from '../http/problems.ts'
import { serveQuestion } from '../http/question-failure.ts'
import type { Sources } from '../sources.ts'
import { shownCompleteness } from '../usage/completeness.ts'
import type { MoneySource } from './money-source.ts'

const unanswered = {
  what: 'spend could not be read',
  problem: usageUnavailable('ClickHouse did not respond. Try again later.'),
}
/** Zones with first days of months: two statements each. */
const calendarsMax = 40

type Row = MonthSpend['rows'][number]
type Total = MonthSpend['totals'][number]

/** What customers of one calendar used in their month and in the one before. */
interface Calendar {
  readonly subjects: Subject[]
  readonly month: Period
  readonly before: Period
}

/** The priced subjects by their months, one at a step. A text says what is wrong. */
function* calendarsOf(policy: Policy, period: string, nowMs: number): Steps<readonly Calendar[] | string> {
  const found = new Map<string, Calendar>()
  for (const subject of policy.subjects.values()) {
    yield
    if (pricesOf(policy, subject) === undefined) continue
    const { timeZone, anchor } = subject
    const key = `${timeZone} ${anchor}`
    const known = found.get(key)
    if (known !== undefined) {
      known.subjects.push(subject)
      continue
    }
    const problems: string[] = []
    const span = readPeriod({ period }, { nowMs, calendar: { timeZone, anchor } }, problems)
    if (span === undefined) return problems.join('; ')
    const { fromMs, toMs, previousMs } = span
    found.set(key, { subjects: [subject], month: { fromMs, toMs }, before: { fromMs: previousMs, toMs: fromMs } })
    if (found.size > calendarsMax)
      return `priced subjects have more than ${calendarsMax} calendars: request the subjects one by one`
  }
  return [...found.values()]
}

/** Exact sums, and how they are written. */
interface Priced {
  readonly list: PriceList
  readonly row: Row
  readonly amount: bigint
  readonly previous: bigint
  readonly forecast: bigint | undefined
}

const none: readonly RouteUsage[] = []
/** Sums go beyond 2^53 only for amounts that no percentage is read of. */
const changeOf = (now: bigint, before: bigint) => (before === 0n ? null : Number(now) / Number(before) - 1)

type Used = Awaited<ReturnType<MoneySource['askMonthUsage']>>

/** Prices the subjects of a calendar, one at a step. */
function* priceCalendar(
  { subjects, month }: Calendar,
  policy: Policy,
  [used, earlier]: readonly [Used, Used],
  untilMs: number,
): Steps<readonly Priced[]> {
  const priced: Priced[] = []
  for (const subject of subjects) {
    yield
    const list = pricesOf(policy, subject)
    if (list === undefined) continue
    const own = used.get(subject.id) ?? none
    const isRunning = untilMs < month.toMs
    const extended = isRunning ? forecastUsage(own, month, untilMs) : undefined
    const [amount, previous] = [own, earlier.get(subject.id) ?? none].map((one) => totalOf(list, one))
    const forecast = extended && totalOf(list, extended)
    const write = (one: bigint) => formatAmount(one, list.digits)
    const row = {
      subject: subject.id,
      plan: subject.plan.name,
      from: iso(month.fromMs),
      to: iso(month.toMs),
      time_zone: subject.timeZone,
      currency: list.currency,
      amount: write(amount ?? 0n),
      previous: write(previous ?? 0n),
      change: changeOf(amount ?? 0n, previous ?? 0n),
      forecast: forecast === undefined ? null : write(forecast),
    }
    priced.push({ list, row, amount: amount ?? 0n, previous: previous ?? 0n, forecast })
  }
  return priced
}

function totalsOf(priced: readonly Priced[]): Total[] {
  return [...Map.groupBy(priced, ({ list }) => list.currency)].map(([currency, of]) => {
    const digits = Math.max(...of.map(({ list }) => list.digits))
    const sum = (value: (one: Priced) => bigint) => of.reduce((all, one) => all + value(one), 0n)
    const [amount, previous] = [sum((one) => one.amount), sum((one) => one.previous)]
    const hasForecast = of.some(({ forecast }) => forecast !== undefined)
    return {
      currency,
      amount: formatAmount(amount, digits),
      previous: formatAmount(previous, digits),
      change: changeOf(amount, previous),
      forecast: hasForecast
        ? formatAmount(
            sum((one) => one.forecast ?? one.amount),
            digits,
          )
        : null,
    }
  })
}

const columns: CsvColumns = {
  subject: 'text',
  plan: 'text',
  from: 'exact',
  to: 'exact',
  time_zone: 'exact',
  currency: 'exact',
  amount: 'exact',
  previous: 'exact',
  change: 'exact',
  forecast: 'exact',
}
const cellsOf = (row: Row) => ({ ...row, change: String(row.change ?? ''), forecast: row.forecast ?? '' })

/** `GET /v1/spend/month`: what every customer's month costs, each in its own zone. */
export function registerMonthSpend(app: FastifyInstance, sources: Sources): void {
  serveQuestion(app, listSpend, unanswered, async ({ query, reach }, reply) => {
    const { state } = sources.policy
    if (state === undefined) return answerProblem(reply, policyUnread)
    const { period, top, format } = query
    // A policy may have a million subjects: others are answered in between.
    const calendars = await inSlices(calendarsOf(state.policy, period, sources.clock.nowMs()))
    if (typeof calendars === 'string') return answerProblem(reply, badRequest(calendars))
    const completeness = await sources.usage.askCompleteness('decisions')
    const untilMs = Math.min(sources.clock.nowMs(), completeness.completeThroughMs ?? 0)
    const priced: Priced[] = []
    for (const one of calendars) {
      const { askMonthUsage } = sources.money
      const used = await Promise.all([askMonthUsage(one.month), askMonthUsage(one.before)])
      const rows = await inSlices(priceCalendar(one, state.policy, used, untilMs))
      // One by one: a call with as many arguments as a calendar may have subjects overflows the stack.
      for (const row of rows) priced.push(row)
    }
    priced.sort((a, b) =>
      a.amount === b.amount ? (a.row.subject < b.row.subject ? -1 : 1) : a.amount < b.amount ? 1 : -1,
    )
    if (format === 'csv') {
      const rows = priced.map(({ row }) => row)
      reply.header('content-disposition', `attachment; filename="spend-${period}.csv"`)
      return reply.type('text/csv; charset=utf-8').send(csvOf(columns, rows.map(cellsOf)))
    }
    const rows = priced.slice(0, top).map(({ row }) => row)
    const left = { left_out: priced.length - rows.length }
    return { period, ...shownCompleteness(completeness, reach), totals: totalsOf(priced), rows, ...left }
  })
}
