import { WeirError } from '@weir/core/errors.ts'
import { printable } from '@weir/core/printable.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { requireConsole } from '../console/console-client.ts'
import { requestName } from '../console/request-name.ts'
import { type Decision, DecisionFeed, type FeedOptions } from '../live/decision-feed.ts'
import { type ListRow, showList } from '../terminal/list-screen.ts'
import { findTerminal, styled, type Terminal } from '../terminal/screen.ts'
import { askWhy, explanationText } from './why.ts'

interface TailOptions extends CommonOptions, FeedOptions {
  readonly follow: boolean
  /** Draw a list on the whole terminal instead of printing lines. */
  readonly screen: boolean
}

/** Decisions that the list keeps: more than a person looks through by arrow keys. */
const keptMax = 1_000

const columns = [
  { title: 'TIME', width: 12 },
  { title: '', width: 1 },
  { title: 'SUBJECT', width: 10, share: 2 },
  { title: 'REQUEST', width: 16, share: 3 },
  { title: 'COST', width: 4, isRight: true },
  { title: 'REFUSED BY', width: 14, share: 1 },
  { title: '', width: 5 },
]

/** A decision in words: time, sign, caller, request, cost, and the limit that refused. */
function cellsOf({ ts, subject, route, method, cost, count, outcome, denied_by: name, limits = [] }: Decision) {
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
function lineOf(decision: Decision): string {
  const line = printable([...cellsOf(decision), decision.id].filter((part) => part !== '').join(' '))
  return decision.outcome === 'deny' ? styled('red', line, process.stdout) : line
}

/** Shows the last decisions on the whole terminal, the newest first. */
async function showDecisions(options: TailOptions, context: CommandContext, terminal: Terminal): Promise<void> {
  let rows: readonly ListRow[] = []
  let state = ''
  let notes = 0
  const add = (row: ListRow) => {
    rows = [row, ...rows.slice(0, keptMax - 1)]
  }
  const feed = new DecisionFeed(options, requireConsole(context.environment, options.data), {
    decision: (decision) => {
      state = ''
      add({ key: decision.id, cells: cellsOf(decision), isRefused: decision.outcome === 'deny' })
    },
    note: (text) => {
      notes += 1
      add({ key: `# ${notes}`, cells: ['', '#', text], isRefused: false })
    },
    report: (text) => {
      state = text
    },
  })
  const head = () =>
    state || (rows.length === 0 ? 'waiting for the next decision' : `the last ${rows.length} decisions`)
  const why = async (id: string) => (id.startsWith('#') ? '' : explanationText(await askWhy(id, options, context)))
  const { signal } = context
  await showList({ columns, head, rows: () => rows, why }, terminal, { signal, work: (until) => feed.follow(until) })
}

/** Prints decisions as they are made, and with `since` those of before. */
export async function tailDecisions(options: TailOptions, context: CommandContext): Promise<void> {
  const { json, follow } = options
  const terminal = options.screen ? findTerminal(context.environment) : undefined
  if (options.screen && (json || !follow)) {
    throw new WeirError('CONFIG_INVALID', '--screen goes with neither --json nor --no-follow')
  }
  // With lines of before, a person waits for these.
  if (terminal !== undefined || (follow && options.since === undefined)) context.progress.end()
  if (terminal !== undefined) return showDecisions(options, context, terminal)
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
