import type { Operation } from '@weir/api/operation.ts'
import { acceptedFormat } from '@weir/api/query/answer-form.ts'
import type { UsageDimension } from '@weir/api/query/columns.ts'
import { filledSteps, widened } from '@weir/api/query/fill.ts'
import { isPosition, positionOf, sortKeyOf } from '@weir/api/query/ranking.ts'
import { type GivenParameters, listOf, parametersOf } from '@weir/api/query/read-parameters.ts'
import type { MonthCalendar } from '@weir/api/query/read-period.ts'
import { parseUnitQuery } from '@weir/api/query/unit-query.ts'
import {
  type AskedAt,
  type ParsedQuery,
  parseOutcomeQuery,
  parseUsageQuery,
  type RollupQuery,
} from '@weir/api/query/usage-query.ts'
import { askOutcomes, askUsage, getOutcomes, getUsage, sumNames } from '@weir/api/usage.ts'
import { dateOf } from '@weir/core/format.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import { isKnown } from '@weir/runtime/serve-description.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { missingScope, subjectForbidden } from '../http/authorize.ts'
import { type CursorOwner, cursorInvalid, ownerHash } from '../http/cursor.ts'
import { etagOf } from '../http/etag.ts'
import { openPages } from '../http/page.ts'
import { answerProblem, outcomesUnavailable, policyUnread, usageUnavailable } from '../http/problems.ts'
import { serveQuestion } from '../http/question-failure.ts'
import type { Sources } from '../sources.ts'
import { iso, shownCompleteness, shownGaps } from './completeness.ts'
import { jsonWithNumbers } from './exact-numbers.ts'
import { priceRows } from './price-usage.ts'
import { answerStream } from './stream-answer.ts'
import { unitSource } from './unit-queries.ts'
import { outcomeSource, type PagePosition, type RollupSource, usageSource } from './usage-queries.ts'

/** A row of an answer, as the question's table gives it. */
interface Row {
  readonly ts?: string
  readonly other?: boolean
  readonly groups?: string
}

/** One kind of query of the rollups. */
interface RollupRoute<Dimension extends string> {
  readonly get: Operation
  /** The same question in a body. */
  readonly post: Operation
  readonly unavailable: Problem
  readonly rows: 'decisions' | 'outcomes'
  readonly parse: (given: GivenParameters, at: AskedAt) => ParsedQuery<Dimension>
  readonly sourceOf: (reach: Reach, query: RollupQuery<Dimension>) => RollupSource
  readonly ask: (reach: Reach, query: RollupQuery<Dimension>, position: PagePosition) => Promise<readonly Row[]>
  /** Sums all rows of all pages. Absent where an answer has no totals. */
  readonly askTotals?: (reach: Reach, query: RollupQuery<Dimension>) => Promise<object | undefined>
  /** Adds prices to rows that are shown; a text says why they have none. Absent where no question has prices. */
  readonly price?: (
    reach: Reach,
    query: RollupQuery<Dimension>,
    rows: readonly object[],
  ) => Promise<readonly object[] | string>
}

const noAnswer = 'ClickHouse did not respond. No data is lost; try again later.'

/** The months of the one subject that is asked about; undefined for several. One that the policy lacks has UTC. */
function calendarOf(policy: Policy | undefined, subjects: readonly string[]): MonthCalendar | undefined {
  const [subject] = subjects
  if (subject === undefined || subjects.length > 1) return undefined
  return policy?.subjects.get(subject) ?? { timeZone: 'UTC', anchor: 1 }
}

/** Sums of the earlier span as an object of their own. */
function shownSums(row: object): object {
  const entries = Object.entries(row)
  const isEarlier = ([name]: readonly [string, unknown]) => name.startsWith('previous_')
  const earlier = entries.filter(isEarlier).map(([name, value]) => [name.slice('previous_'.length), value])
  if (earlier.length === 0) return row
  const { change, ...own } = Object.fromEntries(entries.filter((entry) => !isEarlier(entry)))
  return { ...own, previous: Object.fromEntries(earlier), change }
}

/** A row without what it does not say: the names of other groups, and of a group that it is not another one. */
function shownRow({ other, groups, ...given }: Row, by: readonly string[]): object {
  const row = shownSums(given)
  if (other !== true) return row
  return { ...Object.fromEntries(Object.entries(row).filter(([name]) => !by.includes(name))), other, groups }
}

/** From when to when rows of a question may be, with those that they are compared with. */
const spanOf = ({ fromMs, toMs, comparison }: RollupQuery<string>) => ({ fromMs: comparison?.fromMs ?? fromMs, toMs })

/** The steps of which every group has a row; undefined unless the question is so. */
const filledOf = (query: RollupQuery<string>, { bucketMs }: Pick<RollupSource, 'bucketMs'>, completeMs?: number) =>
  query.isFilled === true ? filledSteps(query, bucketMs, completeMs) : undefined

/** A question that may be asked, and how its page is cut off. */
interface Asked<Dimension extends string> {
  readonly reach: Reach
  readonly query: RollupQuery<Dimension>
  readonly position: PagePosition
  readonly cut: (found: readonly Row[]) => { readonly rows: readonly Row[]; readonly next: string | null }
}

/** Answers a question that may be asked: a page of its rows, with how far they are complete. */
async function answerOf<Dimension extends string>(
  sources: Sources,
  { sourceOf, rows: kind, ask, askTotals }: RollupRoute<Dimension>,
  { reach, query, position, cut }: Asked<Dimension>,
) {
  const { step, timeZone, by, comparison } = query
  const { table, bucketMs } = sourceOf(reach, query)
  const { fromMs, toMs } = widened(query, bucketMs)
  // First: what comes in between the two is then more than was claimed, and never less.
  const completeness = await sources.usage.askCompleteness(kind)
  const [found, totals, gaps] = await Promise.all([
    ask(reach, query, { ...position, filled: filledOf(query, { bucketMs }, completeness.completeThroughMs) }),
    askTotals?.(reach, query),
    sources.usage.readGaps(kind, spanOf(query)),
  ])
  const { rows, next } = cut(found)
  return {
    from: iso(fromMs),
    to: iso(toMs),
    step,
    time_zone: timeZone,
    source: table,
    ...shownCompleteness(completeness, reach),
    gaps: shownGaps(gaps, reach),
    cut_off: next !== null,
    next,
    rows: rows.map((row) => shownRow(row, by)),
    ...(totals === undefined ? {} : { totals: shownSums(totals) }),
    ...(comparison === undefined ? {} : { previous: { from: iso(comparison.fromMs), to: iso(comparison.toMs) } }),
  }
}

type Page = Awaited<ReturnType<typeof answerOf>>

/** Sends a page, or that it is the one that its reader knows. */
function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { body, owner, sumsAreText }: { readonly body: Page; readonly owner: CursorOwner; readonly sumsAreText: boolean },
): FastifyReply {
  const write = (value: object) => (sumsAreText ? JSON.stringify(value) : jsonWithNumbers(value, sumNames))
  // What is not counted yet changes with every answer; what is counted only where it is corrected.
  if (request.method !== 'POST' && body.complete_through !== null && body.complete_through >= body.to) {
    const etag = etagOf(ownerHash(owner), write({ ...body, complete_through: null, next: body.next !== null }))
    reply.header('etag', etag).header('cache-control', 'private, no-cache')
    if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send()
  }
  return reply.type('application/json; charset=utf-8').send(write(body))
}

/** What a browser calls the file: what of, of which units, whose, by what, and from which day to which. */
function fileName(path: string, query: RollupQuery<string>, subjects: readonly string[]) {
  const { fromMs, toMs, timeZone, by, only } = query
  const days = [fromMs, toMs - 1].map((ms) => dateOf(ms, timeZone))
  const of = subjects.length === 1 ? subjects : []
  return [path.slice('/v1/'.length), ...(only.unit ?? []), ...of, ...(by.length === 0 ? [] : ['by', ...by]), ...days]
    .join('-')
    .replaceAll(/[^\w.-]+/g, '-')
}

/** Answers a question with a page, or with a stream of the whole answer. */
async function answerQuestion<Dimension extends string>(
  sources: Sources,
  route: RollupRoute<Dimension>,
  { given, request, reply }: { given: GivenParameters; request: FastifyRequest; reply: FastifyReply },
): Promise<FastifyReply> {
  const { unavailable, parse } = route
  const { path } = route.get
  const { reach } = request
  // First, and whether there is such a subject or not: nothing was read or looked up.
  const subjects = listOf(given.subject)
  // Outcomes do not say below whom their subject was.
  const isReached = route.rows === 'decisions' ? reach.coversNow(subjects) : reach.covers(subjects)
  if (!isReached) return answerProblem(reply, subjectForbidden(request))
  const pages = openPages(request, path, given, sources.clock.nowMs())
  const format = given.format ?? acceptedFormat(request.headers.accept ?? '')
  reply.header('vary', 'Accept')
  const { state } = sources.policy
  if (given.period !== undefined && state === undefined) return answerProblem(reply, policyUnread)
  const calendar = calendarOf(state?.policy, listOf(given.subject ?? reach.subjects))
  const parsed = parse({ ...given, format }, { nowMs: pages.atMs, calendar, isNarrow: reach.isOwn })
  if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
  const { query, form } = parsed
  if (form.format !== 'json') {
    const question = { source: route.sourceOf(reach, query), query, form: { ...form, format: form.format } }
    return answerStream(request, reply, sources.semaphores.exports, {
      format: form.format,
      name: fileName(path, query, listOf(given.subject)),
      askCompleteness: () => sources.usage.askCompleteness(route.rows),
      readGaps: () => sources.usage.readGaps(route.rows, spanOf(query)),
      open: (signal, completeMs) =>
        sources.usage.openStream(reach, { ...question, filled: filledOf(query, question.source, completeMs) }, signal),
      unavailable,
    })
  }
  const missing = query.isPriced && !reach.isOwn ? missingScope(request, 'billing') : undefined
  if (missing !== undefined) return answerProblem(reply, missing)
  const order = sortKeyOf(query)
  if (pages.isAstray((position) => isPosition(order, position))) return answerProblem(reply, cursorInvalid)
  // One more than the page has says whether there is a next one.
  const position = { after: pages.after, rowsMax: form.limit + 1 }
  const cut = (found: readonly Row[]) => pages.cut(reply, found, form.limit, (last) => positionOf(order, { ...last }))
  const body = await answerOf(sources, route, { reach, query, position, cut })
  const priced = query.isPriced ? await route.price?.(reach, query, body.rows) : undefined
  if (typeof priced === 'string') return answerProblem(reply, badRequest(priced))
  if (priced !== undefined) body.rows = [...priced]
  const [unit = '', ...others] = listOf(given.unit)
  const card = others.length === 0 ? state?.policy.rateCards.get(unit) : undefined
  if (card !== undefined) Object.assign(body, { currency: card.currency })
  return sendPage(request, reply, { body, owner: pages.owner, sumsAreText: form.sumsAreText })
}

/** A question in the query, or in a body where it is too long for an address. `units` answers what has a `unit`. */
function register<Dimension extends string>(
  app: FastifyInstance,
  sources: Sources,
  route: RollupRoute<Dimension>,
  units?: RollupRoute<string>,
): void {
  const unanswered = { what: 'query failed', problem: route.unavailable }
  const answer = (asked: Parameters<typeof answerQuestion>[2]) =>
    units === undefined || asked.given.unit === undefined
      ? answerQuestion(sources, route, asked)
      : answerQuestion(sources, units, asked)
  serveQuestion(app, route.get, unanswered, async (request, reply) =>
    answer({ given: request.query as GivenParameters, request, reply }),
  )
  serveQuestion(app, route.post, unanswered, async (request, reply) => {
    const { given, problems: wrong } = parametersOf(request.body)
    if (wrong.length > 0) return answerProblem(reply, badRequest(wrong.join('; ')))
    return answer({ given, request, reply })
  })
}

/** `/v1/usage`: who used what and when. `/v1/outcomes`: how upstreams answered, and how fast. */
export function registerUsage(app: FastifyInstance, sources: Sources): void {
  const common = { get: getUsage, post: askUsage, unavailable: usageUnavailable(noAnswer), rows: 'decisions' } as const
  const units: RollupRoute<string> = {
    ...common,
    parse: parseUnitQuery,
    sourceOf: (_reach, query) => unitSource(query),
    ask: sources.usage.askUnits,
    askTotals: sources.usage.askUnitTotals,
  }
  const usage: RollupRoute<UsageDimension> = {
    ...common,
    parse: parseUsageQuery,
    sourceOf: usageSource,
    ask: sources.usage.askUsage,
    askTotals: sources.usage.askUsageTotals,
    async price(reach, query, rows) {
      const { state } = sources.policy
      if (state === undefined) throw new Error('the policy was not read yet, so there are no prices')
      return priceRows({ ask: sources.usage.askUsage, policy: state.policy, reach, query }, rows)
    },
  }
  register(app, sources, usage, units)
  register(app, sources, {
    get: getOutcomes,
    post: askOutcomes,
    unavailable: outcomesUnavailable(noAnswer),
    rows: 'outcomes',
    parse: parseOutcomeQuery,
    sourceOf: () => outcomeSource,
    ask: sources.usage.askOutcomes,
  })
}
