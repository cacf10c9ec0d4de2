import { styleText } from 'node:util'
import type { ShownDecision } from '@weir/api/decisions.ts'
import { printable } from '@weir/core/printable.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { requireConsole } from '../console/console-client.ts'
import { requestName } from '../console/request-name.ts'
import { DecisionFeed, type FeedOptions } from '../live/decision-feed.ts'

interface TailOptions extends CommonOptions, FeedOptions {
  readonly follow: boolean
}

/** A decision in words: time, sign, caller, request, cost, and the limit that refused. */
function cellsOf({ ts, subject, route, method, cost, count, outcome, denied_by: name, limits = [] }: ShownDecision) {
  const isRefused = outcome === 'deny'
  const limit = limits.find((one) => one.name === name)
  const state = limit === undefined ? name : `${name} ${limit.used}/${limit.size}`
  const many = count > 1 ? `×${count}` : ''
  return [
    ts.slice(11, 23),
    isRefused ? '✕' : '✓',
    subject,
    requestName(method, route),
    String(cost),
    isRefused ? state : '',
    many,
  ]
}

/** One decision as a line for people. */
function lineOf(decision: ShownDecision): string {
  const line = printable([...cellsOf(decision), decision.id].filter((part) => part !== '').join(' '))
  return decision.outcome === 'deny' && process.stdout.isTTY ? styleText('red', line) : line
}

/** Prints decisions as they are made, and with `since` or `from` those of before; with `to` only those. */
export async function tailDecisions(options: TailOptions, context: CommandContext): Promise<void> {
  const { json } = options
  const follow = options.follow && options.to === undefined
  // With lines of before, a person waits for these.
  if (follow && (options.since ?? options.from) === undefined) context.progress.end()
  const feed = new DecisionFeed(options, requireConsole(context.environment, options.data), {
    decision: (decision) => {
      context.progress.end()
      if (json) context.print(JSON.stringify(decision))
      else context.print(lineOf(decision), 'exactly')
    },
    // Between decisions, so that it is seen where it belongs; with `--json` beside them.
    note: (text) => (json ? context.report(text) : context.print(`# ${text}`)),
    report: context.report,
  })
  await (follow ? feed.follow(context.signal) : feed.history())
}
