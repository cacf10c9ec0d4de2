import { setTimeout as delay } from 'node:timers/promises'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { askConsole, type ConsoleAddress, requireConsole } from '../console/console-client.ts'
import { type FeedOptions, filterOf } from '../live/decision-feed.ts'
import { followStream } from '../live/follow-stream.ts'
import { Rates, type SubjectRate } from '../live/rates.ts'
import { type ListRow, showList } from '../terminal/list-screen.ts'
import { findTerminal, type Terminal } from '../terminal/screen.ts'
import { textTable } from '../text-table.ts'
import { askWhy, explanationText, lastRefusal } from './why.ts'

interface TopOptions extends CommonOptions, FeedOptions {
  /** Seconds that the rates are of. */
  readonly seconds: number
  /** Subjects that are printed where there is no screen. */
  readonly limit: number
}

/** Who looks at the screen sees a stop of metering soon; it costs the console one small question. */
const countedEveryMs = 5_000

/** The orders that `s` goes through. */
const orders = [
  { name: 'requests', compare: (a: SubjectRate, b: SubjectRate) => b.requests - a.requests },
  { name: 'refusals', compare: (a: SubjectRate, b: SubjectRate) => b.refused - a.refused },
  {
    name: 'nearest limit',
    compare: (a: SubjectRate, b: SubjectRate) => (b.nearest?.share ?? 0) - (a.nearest?.share ?? 0),
  },
  { name: 'name', compare: (a: SubjectRate, b: SubjectRate) => (a.subject < b.subject ? -1 : 1) },
] as const
const byName = orders[3].compare

const rateText = (rate: number) => {
  const digits = rate < 100 ? 1 : 0
  return rate.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

const columns = [
  { title: 'SUBJECT', width: 12, share: 2 },
  { title: 'REQ/S', width: 8, isRight: true },
  { title: 'REFUSED/S', width: 9, isRight: true },
  { title: 'BY', width: 8, share: 1 },
  { title: 'NEAREST', width: 14, share: 1 },
  { title: 'KEY', width: 12, share: 2 },
]

/** What the rows without a name of a subject are called. */
const othersName = 'other subjects'

/** Listens to the stream, and says what it knows by now. */
class Top {
  readonly #console: ConsoleAddress
  readonly #options: TopOptions
  readonly #rates: Rates
  #counted: string | null | undefined
  #lostAtMs: number | undefined
  #order = 0

  constructor(options: TopOptions, context: CommandContext) {
    this.#console = requireConsole(context.environment, options.data)
    this.#options = options
    this.#rates = new Rates(options.seconds)
  }

  get isFull(): boolean {
    return this.#rates.seconds >= this.#options.seconds - 0.5
  }

  sortByNext(): void {
    this.#order = (this.#order + 1) % orders.length
  }

  /** Listens until the signal, or until `onSecond` says that it is enough. */
  async listen(signal: AbortSignal, onSecond: (sums: string) => boolean = () => true): Promise<void> {
    const query = { ...filterOf(this.#options), by: 'subject' }
    const onBreak = () => {
      this.#lostAtMs ??= Date.now()
    }
    for await (const { event, data } of followStream({ console: this.#console, query, signal, onBreak })) {
      if (event === 'comment' && data === 'connected') this.#rates.begin()
      if (event === 'comment' && data === 'following') this.#rates.following()
      if (event === 'decision') this.#rates.listed(JSON.parse(data))
      if (event !== 'sums') continue
      this.#lostAtMs = undefined
      this.#rates.second(JSON.parse(data))
      if (!onSecond(data)) return
    }
  }

  /** Asks until when decisions are in the tables, again and again until the signal. */
  async askCounted(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.askCountedOnce()
      await delay(countedEveryMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async askCountedOnce(): Promise<void> {
    const query = { from: 'now-15m', step: 'total', subject: this.#options.subject }
    const request = { path: '/v1/usage', query }
    const answer = await askConsole<{ readonly complete_through: string | null }>(this.#console, request).catch(
      () => undefined,
    )
    this.#counted = answer?.body.complete_through
  }

  head(): string {
    const { allowed, refused } = this.#rates.all()
    const seconds = Math.round(this.#rates.seconds)
    if (seconds === 0 && this.#lostAtMs === undefined) return 'listening …'
    const counted = this.#counted?.slice(11, 19) ?? 'not known'
    const since =
      this.#lostAtMs === undefined ? '' : `  NO STREAM for ${Math.round((Date.now() - this.#lostAtMs) / 1_000)} s`
    return `${rateText(allowed)}/s allowed  ${rateText(refused)}/s refused  counted until ${counted}  last ${seconds} s${since}`
  }

  order(): string {
    return orders[this.#order]?.name ?? ''
  }

  rows(): ListRow[] {
    const { rates, others } = this.#rates.subjects()
    const { compare } = orders[this.#order] ?? orders[0]
    const rows = rates
      .toSorted((a, b) => compare(a, b) || byName(a, b))
      .map(({ subject, requests, refused, by, nearest, keyId }) => ({
        key: subject,
        cells: [
          ...[subject, rateText(requests), rateText(refused), by],
          ...[nearest === undefined ? '' : `${nearest.name} ${Math.round(nearest.share * 100)} %`, keyId],
        ],
        isRefused: refused > 0,
      }))
    if (others.requests < 1e-6) return rows
    return [
      ...rows,
      { key: '', cells: [othersName, rateText(others.requests), rateText(others.refused)], isRefused: false },
    ]
  }
}

/** Shows it on the whole terminal. */
async function showTop(top: Top, options: TopOptions, context: CommandContext, terminal: Terminal): Promise<void> {
  const why = async (subject: string) => {
    if (subject === '') return `more subjects than a second of the stream names`
    return explanationText(await askWhy(await lastRefusal(subject, options, context), options, context))
  }
  const view = {
    ...{ columns, why, rows: () => top.rows(), head: () => top.head() },
    own: { name: 's', does: () => `sort (${top.order()})`, press: () => top.sortByNext() },
  }
  const work = async (signal: AbortSignal) => {
    const counting = top.askCounted(signal)
    await top.listen(signal)
    await counting
  }
  await showList(view, terminal, { signal: context.signal, work })
}

/**
 * Shows who asks how much now, and who is refused: on the whole terminal; where there is none, once, in lines; with
 * `json` the sums of each second, a line each, until it is stopped.
 */
export async function showRates(options: TopOptions, context: CommandContext): Promise<void> {
  const top = new Top(options, context)
  if (options.json) {
    const print = (sums: string) => {
      context.print(sums)
      return true
    }
    return top.listen(context.signal, print)
  }
  const terminal = findTerminal(context.environment)
  context.progress.end()
  if (terminal !== undefined) return showTop(top, options, context, terminal)
  await top.listen(context.signal, () => !top.isFull)
  if (context.signal.aborted) return
  await top.askCountedOnce()
  const rows = top
    .rows()
    .slice(0, options.limit)
    .map(({ cells }) => columns.map((_, at) => cells[at] ?? ''))
  context.print(top.head())
  if (rows.length > 0) context.print(textTable([columns.map(({ title }) => title), ...rows]))
}
