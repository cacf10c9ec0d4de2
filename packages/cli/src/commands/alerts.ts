import type { Alert, ListedAlert } from '@weir/api/alerts.ts'
import type { Page } from '@weir/api/schema.ts'
import { quantity } from '@weir/core/format.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { printList } from '../console/listing.ts'
import { momentCell } from '../terminal/cells.ts'
import { textTable } from '../text-table.ts'

interface Filter {
  readonly subject?: string
  readonly type?: string
  readonly from?: string
  readonly to?: string
  readonly endpoint?: string
}

/** A test is delivered within milliseconds, and its row written within a second or two. */
const testDeadlineMs = 30_000
const testPollMs = 500

const inPath = encodeURIComponent

/** Says in few words what an alert is about. */
function inWords({ type, data }: Pick<Alert, 'type' | 'data'>): string {
  const { limit, percent, until, runs_out, endpoint, watch, count, usual, currency } = data
  const [used, size] = [data.used, data.size].map((value) =>
    quantity(value === undefined ? undefined : String(value), currency === undefined ? undefined : String(currency)),
  )
  if (type === 'weir.quota.reached') return `${limit}: ${percent}%, ${used} of ${size}`
  if (type === 'weir.quota.resolved') return `${limit}: ${percent}% resolved, ${data.reason}`
  if (type === 'weir.quota.forecast') return `${limit}: ${used} of ${size}, used up by ${momentCell(String(runs_out))}`
  if (type === 'weir.budget.reached') return `budget: ${percent}%, ${data.amount} ${data.currency}`
  if (type === 'weir.limit.blocked') return `${limit}: blocked until ${momentCell(String(until))}`
  if (type === 'weir.alerts.digest') return `${data.count} alerts, ${data.digest}`
  if (endpoint !== undefined) return String(endpoint)
  return `${watch}: ${count}, usually ${usual}`
}

/** Lists alerts, the newest first. */
export async function listAlerts(
  options: CommonOptions & Filter & { readonly limit: number; readonly outcome?: readonly string[] },
  context: CommandContext,
): Promise<void> {
  const { subject, type, from, to, endpoint, limit, outcome } = options
  const query = { subject, type, from, to, endpoint, limit, outcome }
  const { items, next } = await consoleAnswer<Page<ListedAlert>>(context, options, { path: '/v1/alerts', query })
  const cells = (alert: ListedAlert) => {
    const endpoints = Object.entries(alert.deliveries).map(([endpoint, outcome]) => `${endpoint} ${outcome}`)
    return [
      momentCell(alert.time),
      alert.subject,
      alert.type,
      inWords(alert),
      endpoints.join(', ') || alert.state,
      alert.id,
    ]
  }
  const head = ['TIME', 'SUBJECT', 'TYPE', 'WHAT', 'DELIVERIES', 'ID']
  printList(items, { head, cells, none: 'No alerts.' }, options, context)
  if (!options.json && next !== null) context.report(`more alerts: --to ${items.at(-1)?.time}`)
}

const deliveryRows = ({ deliveries, attempts_max: max }: Alert) =>
  deliveries.map(({ endpoint, attempt, at, outcome, status, ms, error, next_try }) => [
    momentCell(at),
    endpoint,
    attempt === 0 ? '0' : `${attempt} of ${max}`,
    outcome,
    status === 0 ? '-' : String(status),
    String(ms),
    momentCell(next_try),
    error,
  ])

/** Prints one alert with its deliveries. */
export async function showAlert(id: string, options: CommonOptions, context: CommandContext): Promise<void> {
  const alert = await consoleAnswer<Alert>(context, options, { path: `/v1/alerts/${inPath(id)}` })
  if (options.json) return context.print(JSON.stringify(alert))
  context.print(`${momentCell(alert.time)}  ${alert.type}  ${alert.subject}  ${inWords(alert)}  (${alert.state})\n`)
  const head = ['AT', 'ENDPOINT', 'ATTEMPT', 'OUTCOME', 'STATUS', 'MS', 'NEXT TRY', 'ERROR']
  if (alert.deliveries.length === 0) context.report('No deliveries.')
  else context.print(textTable([head, ...deliveryRows(alert)]))
}

/** Delivers one alert again, or all alerts of some time whose delivery was given up or dropped. */
export async function redeliver(
  id: string | undefined,
  options: CommonOptions & Filter,
  context: CommandContext,
): Promise<void> {
  const { subject, type, from, to, endpoint } = options
  const request =
    id === undefined
      ? { path: '/v1/deliveries/redeliver', body: { subject, type, from, to, endpoint } }
      : { path: `/v1/alerts/${inPath(id)}/redeliver`, body: { endpoint } }
  const answer = await consoleAnswer<{ readonly requested: number }>(context, options, { method: 'POST', ...request })
  if (options.json) context.print(JSON.stringify(answer))
  else context.report(`${answer.requested} deliveries queued; see "weir alerts show" for their progress`)
}

/** Sends an endpoint a test and reports the outcome. Resolves to whether the endpoint accepted it. */
export async function testEndpoint(
  name: string,
  options: CommonOptions & { readonly subject?: string },
  context: CommandContext,
): Promise<boolean> {
  const { subject } = options
  const body = subject === undefined ? {} : { body: { subject } }
  const request = { method: 'POST', path: `/v1/endpoints/${inPath(name)}/test`, ...body } as const
  const { id } = await consoleAnswer<{ readonly id: string }>(context, options, request)
  context.report(`test sent to ${name}: alert ${id}`)
  const firstAttempt = async () => {
    const shown = { path: `/v1/alerts/${inPath(id)}`, signal: context.signal }
    const found = await consoleAnswer<Alert>(context, options, shown).catch(() => undefined)
    return found?.deliveries.find((delivery) => delivery.attempt > 0 || delivery.outcome === 'dropped')
  }
  const waiting = { deadlineMs: testDeadlineMs, everyMs: testPollMs, signal: context.signal }
  // The test is under way: an abort ends the wait, and its id is printed as always.
  const attempt = await waitUntil(firstAttempt, waiting).catch((error: unknown) => {
    if (context.signal.aborted) return undefined
    throw error
  })
  const isGood = attempt?.outcome === 'delivered'
  if (options.json) context.print(JSON.stringify({ id, attempt: attempt ?? null }))
  else if (attempt === undefined) context.report('no result yet: is alerting running?')
  else if (isGood) context.report(`${name} accepted the test: ${attempt.status} after ${attempt.ms} ms`)
  else context.report(`${name} rejected it: ${attempt.error}`)
  return isGood
}

/** Prints the secret that signs the webhooks of an endpoint, which Weir has made. */
export async function showSecret(name: string, options: CommonOptions, context: CommandContext): Promise<void> {
  const found = await consoleAnswer<{ secret: string }>(context, options, {
    path: `/v1/endpoints/${inPath(name)}/secret`,
  })
  context.print(options.json ? JSON.stringify(found) : found.secret)
}
