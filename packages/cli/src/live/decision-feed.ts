import type { DecisionPage, ShownDecision } from '@weir/api/decisions.ts'
import { WeirError } from '@weir/core/errors.ts'
import { parseDurationMs } from '@weir/policy/policy-values.ts'
import { askConsole, type ConsoleAddress } from '../console/console-client.ts'
import type { StreamEvent } from '../console/event-stream.ts'
import { followStream } from './follow-stream.ts'
import { untilCounted } from './until-counted.ts'

/** Which decisions are meant: options of `weir tail`. */
export interface FeedOptions {
  readonly denied?: boolean
  readonly subject?: readonly string[]
  readonly keyId?: readonly string[]
  readonly route?: readonly string[]
  /** Those of before first: a duration. */
  readonly since?: string
  /** Instead of a duration, times as the console reads them: `2030-01-31`, `now-2h`. */
  readonly from?: string
  readonly to?: string
}

/** What decisions are given to. */
export interface FeedSink {
  readonly decision: (decision: ShownDecision) => void
  /** What is to be known between two decisions. */
  readonly note: (text: string) => void
  /** What is to be known about the feed itself. */
  readonly report: (text: string) => void
}

/** Decisions of before that are given; more are for `GET /v1/decisions`. */
const historyMax = 10_000
const pageRowsMax = 1_000

/** What is asked of the list and of the stream alike. */
const filterOf = ({ denied = false, subject, keyId, route }: FeedOptions) => ({
  subject,
  key_id: keyId,
  route,
  outcome: denied ? 'deny' : undefined,
})

/** Gives decisions to a sink, each once. */
export class DecisionFeed {
  readonly #options: FeedOptions
  readonly #console: ConsoleAddress
  readonly #sink: FeedSink
  /** Ids that came from the tables: the stream may bring the last of them again. */
  readonly #given = new Set<string>()
  #needsHistory: boolean

  constructor(options: FeedOptions, console: ConsoleAddress, sink: FeedSink) {
    this.#options = options
    this.#console = console
    this.#sink = sink
    this.#needsHistory = (options.since ?? options.from) !== undefined
  }

  #spanOf() {
    const { since, from, to } = this.#options
    if ((from ?? to) !== undefined) {
      if (since !== undefined) throw new WeirError('COMMAND_INVALID', '--since goes without --from and --to.')
      return { from, to }
    }
    const sinceMs = parseDurationMs(since ?? '5m')
    if (sinceMs === undefined)
      throw new WeirError('COMMAND_INVALID', `--since is a duration such as 5m, but is ${since}`)
    return { from: new Date(Date.now() - sinceMs).toISOString() }
  }

  /** Gives what was decided since then, the oldest first. `live`: all until now, as far as it comes in time. */
  async history(live?: AbortSignal): Promise<void> {
    const span = this.#spanOf()
    const ask = async (more: object) => {
      const query = { ...filterOf(this.#options), ...span, ...more }
      const request = { path: '/v1/decisions', query, ...(live === undefined ? {} : { signal: live }) }
      return (await askConsole<DecisionPage>(this.#console, request)).body
    }
    const first = () => ask({ limit: pageRowsMax })
    const found = live === undefined ? undefined : await untilCounted(first, live)
    let page = found?.page ?? (await first())
    if (found?.isComplete === false)
      this.#sink.report(`some decisions may be missing: only counted up to ${page.complete_through ?? 'not known yet'}`)
    const rows = [...page.rows]
    while (page.next !== null && rows.length < historyMax) {
      page = await ask({ limit: pageRowsMax, after: page.next })
      rows.push(...page.rows)
    }
    if (page.next !== null) this.#sink.report(`only the newest ${historyMax} decisions are printed`)
    for (const row of rows.toReversed()) {
      this.#given.add(row.id)
      this.#sink.decision(row)
    }
  }

  /** Gives decisions as they are made, until the signal. */
  async follow(signal: AbortSignal): Promise<void> {
    const query = filterOf(this.#options)
    const onBreak = (pauseMs: number, isGap: boolean) => {
      if (isGap) this.#sink.note('decisions may be missing here')
      this.#sink.report(`stream closed; reconnecting in ${pauseMs / 1_000} s`)
    }
    for await (const event of followStream({ console: this.#console, query, signal, onBreak })) {
      await this.#take(event, signal)
    }
  }

  async #take({ event, data }: StreamEvent, signal: AbortSignal): Promise<void> {
    if (event === 'comment' && data === 'following' && this.#needsHistory) {
      this.#needsHistory = false
      await this.history(signal)
    }
    if (event === 'dropped') this.#sink.note(`${JSON.parse(data).count} dropped`)
    if (event === 'gap') this.#sink.note('decisions are missing here')
    if (event !== 'decision') return
    const decision: ShownDecision = JSON.parse(data)
    if (!this.#given.delete(decision.id)) this.#sink.decision(decision)
  }
}
