import { setTimeout as delay } from 'node:timers/promises'
import { WeirError } from '@weir/core/errors.ts'
import { parseDurationMs } from '@weir/policy/policy-values.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { askConsole, type ConsoleAddress, openConsoleStream, requireConsole } from '../console/console-client.ts'
import type { StreamEvent } from '../console/event-stream.ts'
import { printable } from '../text-table.ts'

interface TailOptions extends CommonOptions {
  readonly denied: boolean
  readonly subject?: readonly string[]
  readonly keyId?: readonly string[]
  readonly route?: readonly string[]
  readonly since?: string
  readonly follow: boolean
}

interface Decision {
  readonly id: string
  readonly ts: string
  readonly subject: string
  readonly route: string
  readonly method: string
  readonly cost: number
  readonly count: number
  readonly outcome: string
  readonly denied_by: string
  readonly limits?: readonly { readonly name: string; readonly used: number; readonly size: number }[]
}
interface Page {
  readonly rows: readonly Decision[]
  readonly next: string | null
  readonly to: string
  readonly complete_through: string | null
}

/** Decisions of before that are printed; more are for `GET /v1/decisions`. */
const historyMax = 10_000
const pageRowsMax = 1_000
/** How long the tables may be behind the stream: what is not in them by then is said to be missing. */
const meteredWithinMs = 15_000
/** Between two attempts to listen again. */
const [pauseMsMin, pauseMsMax] = [1_000, 30_000]

/** One decision as a line for people. */
function lineOf({
  id,
  ts,
  subject,
  route,
  method,
  cost,
  count,
  outcome,
  denied_by: name,
  limits = [],
}: Decision): string {
  const isRefused = outcome === 'deny'
  const limit = limits.find((one) => one.name === name)
  const state = limit === undefined ? name : `${name} ${limit.used}/${limit.size}`
  const what = route.includes(' ') ? route : `${method} ${route}`
  const parts = [ts.slice(11, 23), isRefused ? '✕' : '✓', subject, what, String(cost), isRefused ? state : '']
  return printable([...parts, count > 1 ? `×${count}` : '', id].filter((part) => part !== '').join(' '))
}

/** What is asked of the list and of the stream alike. */
const filterOf = ({ denied, subject, keyId, route }: TailOptions) => ({
  ...{ subject, key_id: keyId, route },
  outcome: denied ? 'deny' : undefined,
})

/** Prints decisions, one a line, each once. */
class Tail {
  readonly #options: TailOptions
  readonly #context: CommandContext
  readonly #console: ConsoleAddress
  /** Ids that came from the tables: the stream may bring the last of them again. */
  readonly #printed = new Set<string>()
  /** Where the stream goes on; undefined before its first decision. */
  #lastId: string | undefined
  #needsHistory: boolean

  constructor(options: TailOptions, context: CommandContext) {
    this.#options = options
    this.#context = context
    this.#console = requireConsole(context.environment, options.data)
    this.#needsHistory = options.since !== undefined
  }

  /** Prints what was decided since then, the oldest first. `isLive`: all until now, as far as it comes in time. */
  async history(isLive: boolean): Promise<void> {
    const { since = '5m' } = this.#options
    const sinceMs = parseDurationMs(since)
    if (sinceMs === undefined)
      throw new WeirError('CONFIG_INVALID', `--since is a duration such as 5m, but is ${since}`)
    const from = new Date(Date.now() - sinceMs).toISOString()
    const ask = async (more: object) => {
      const query = { ...filterOf(this.#options), from, ...more }
      return (await askConsole<Page>(this.#console, { path: '/v1/decisions', query })).body
    }
    let page = await ask({ limit: pageRowsMax })
    const followedMs = Date.parse(page.to)
    const isComplete = ({ complete_through: through }: Page) => through !== null && Date.parse(through) >= followedMs
    const endsMs = performance.now() + meteredWithinMs
    while (isLive && !isComplete(page) && performance.now() < endsMs) {
      await delay(500, undefined, { signal: this.#context.signal })
      page = await ask({ limit: pageRowsMax })
    }
    const counted = page.complete_through ?? 'nothing is known yet'
    if (isLive && !isComplete(page)) this.#context.report(`decisions may be missing here: counted until ${counted}`)
    const rows = [...page.rows]
    while (page.next !== null && rows.length < historyMax) {
      page = await ask({ limit: pageRowsMax, after: page.next })
      rows.push(...page.rows)
    }
    if (page.next !== null) this.#context.report(`older decisions are left out: ${historyMax} are printed`)
    for (const row of rows.toReversed()) {
      this.#printed.add(row.id)
      this.#print(row)
    }
  }

  /** Prints decisions as they are made until the command is stopped. */
  async follow(): Promise<void> {
    const { signal } = this.#context
    let failures = 0
    let wasOpen = false
    while (!signal.aborted) {
      try {
        const query = filterOf(this.#options)
        const request = { path: '/v1/decisions/stream', query }
        for await (const event of openConsoleStream(this.#console, request, { lastId: this.#lastId, signal })) {
          failures = 0
          wasOpen = true
          await this.#take(event)
        }
      } catch (error) {
        if (signal.aborted) return
        const isPassing = error instanceof WeirError && error.code === 'CONSOLE_UNAVAILABLE'
        if (!isPassing || !wasOpen) throw error
      }
      if (signal.aborted) return
      // Without an id there is no place to go on from.
      if (failures === 0 && this.#lastId === undefined) this.#say('decisions may be missing here')
      failures += 1
      const pauseMs = Math.min(pauseMsMin * 2 ** (failures - 1), pauseMsMax)
      this.#context.report(`the stream ended; listening again in ${pauseMs / 1_000} s`)
      await delay(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #take({ event, data, id }: StreamEvent): Promise<void> {
    if (event === 'comment' && data === 'following' && this.#needsHistory) {
      this.#needsHistory = false
      await this.history(true)
    }
    if (event === 'dropped') this.#say(`${JSON.parse(data).count} dropped`)
    if (event === 'gap') this.#say('decisions are missing here')
    if (event !== 'decision') return
    this.#lastId = id
    const decision: Decision = JSON.parse(data)
    if (!this.#printed.delete(decision.id)) this.#print(decision)
  }

  /** Between decisions, so that it is seen where it belongs; with `--json` beside them. */
  #say(text: string): void {
    if (this.#options.json) this.#context.report(text)
    else this.#context.print(`# ${text}`)
  }

  #print(decision: Decision): void {
    this.#context.print(this.#options.json ? JSON.stringify(decision) : lineOf(decision))
  }
}

/** Prints decisions as they are made, and with `since` those of before. */
export async function tailDecisions(options: TailOptions, context: CommandContext): Promise<void> {
  const tail = new Tail(options, context)
  await (options.follow ? tail.follow() : tail.history(false))
}
