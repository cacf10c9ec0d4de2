import { decisionUnits } from '@weir/api/decision-units.ts'
import type { DecisionPage, Explanation, Remedy } from '@weir/api/decisions.ts'
import { WeirError } from '@weir/core/errors.ts'
import { wait } from '@weir/core/format.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { requestName } from '../console/request-name.ts'
import { untilCounted } from '../live/until-counted.ts'
import { countCell, momentCell } from '../terminal/cells.ts'
import { textTable } from '../text-table.ts'

/** Says in few words what would have been enough. */
function remedyText({ how, ms = 0, at_most: most, at_least: least, limit, plan }: Remedy): string {
  if (how === 'wait') return `wait ${wait(ms)}`
  if (how === 'cost') return `cost ≤ ${countCell(most ?? null)}`
  if (how === 'plan') return `plan ${plan}`
  return `${how} of ${limit} ≥ ${countCell(least ?? null)}`
}

interface WhyOptions extends CommonOptions {
  readonly subject?: string
  readonly last?: boolean
}

/** An answer with all its headers is shorter; the rest is not read. */
const pastedMax = 1_000_000
/** As far back as the console looks for one subject, less what clocks may differ. */
const lastRefusalMs = 30 * 86_400_000

/** Reads the id in the header `Weir-Decision` of an answer as `curl -i` or `curl -v` print it, or an id alone. */
async function pastedId(input: AsyncIterable<Buffer | string>): Promise<string> {
  let pasted = ''
  for await (const part of input) {
    pasted += String(part)
    if (pasted.length > pastedMax) break
  }
  const id = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
  const found = new RegExp(`weir-decision["']?\\s*[:=]\\s*["']?(${id})`, 'i').exec(pasted)
  const alone = new RegExp(`^\\s*(${id})\\s*$`, 'i').exec(pasted)
  const read = found?.[1] ?? alone?.[1]
  if (read === undefined) {
    throw new WeirError('COMMAND_INVALID', 'Standard input has no Weir-Decision header')
  }
  return read
}

/** Asks for the newest refusal of a subject once all until now is counted; throws CONSOLE_REFUSED for none. */
async function lastRefusal(subject: string, options: CommonOptions, context: CommandContext): Promise<string> {
  const from = new Date(Date.now() - lastRefusalMs).toISOString()
  const query = { subject, outcome: 'deny', from, limit: 1 }
  const ask = () => consoleAnswer<DecisionPage>(context, options, { path: '/v1/decisions', query })
  context.progress.tell('waiting until requests of this second are counted')
  const { page, isComplete } = await untilCounted(ask)
  const until = momentCell(page.complete_through, 'an unknown time')
  if (!isComplete) context.report(`Requests have been counted up to ${until}: a newer refusal may be missing.`)
  const [row] = page.rows
  if (row !== undefined) return row.id
  throw new WeirError('CONSOLE_REFUSED', `No request of ${JSON.stringify(subject)} was refused in the last 30 days.`)
}

/** Which decision is meant: an id, `-` for an answer on standard input, or the newest refusal of a subject. */
function idOf(id: string | undefined, options: WhyOptions, context: CommandContext): Promise<string> | string {
  const { subject, last = false } = options
  const isLast = subject !== undefined && last
  if (isLast === (id !== undefined) || (subject !== undefined) !== last) {
    throw new WeirError('COMMAND_INVALID', 'Name a decision by its id, - for a pasted answer, or --subject ID --last')
  }
  if (isLast) return lastRefusal(subject, options, context)
  return id === '-' ? pastedId(process.stdin) : (id ?? '')
}

/** A decision is metered within seconds, where metering is not behind; a person waits no longer for one. */
const meteredWithinMs = 30_000

/** Says in lines why a decision came out as it did, and what would have admitted it. */
function explanationText({
  ts,
  subject,
  method,
  route,
  cost,
  count,
  outcome,
  summary,
  limits,
  would_have_allowed: remedies,
  policy,
  now,
}: Explanation): string {
  const request = requestName(method, route)
  const lines = [
    `${outcome === 'deny' ? 'REFUSED' : 'ALLOWED'}  ${subject}  ${request}  cost ${countCell(cost)}${count === 1 ? '' : ` × ${countCell(count)}`}  ${momentCell(ts)}`,
  ]
  lines.push(summary)
  const rows = limits.map(({ name, used, size, needed, remaining, reset_at: reset, because, refused, currency }) => [
    name,
    countCell(used, currency),
    countCell(size, currency),
    countCell(needed, currency),
    countCell(remaining, currency),
    momentCell(reset),
    because.join(', '),
    refused ? 'refused' : '',
  ])
  const head = ['LIMIT', 'USED', 'SIZE', 'NEEDED', 'LEFT', 'RESET', 'SOURCE', '']
  if (rows.length > 0) lines.push(textTable([head, ...rows]))
  if (remedies.length > 0) lines.push(`would have helped: ${remedies.map(remedyText).join(' · ')}`)
  if (now?.allowed === true) lines.push('now: would be allowed')
  if (now?.allowed === false) lines.push(`now: would be refused by ${now.denied_by}`)
  if (policy === null) return lines.join('\n')
  const since = policy.since_changed.map(({ kind, name }) => `${kind} ${name}`).join(', ')
  const then =
    policy.change === undefined ? 'not known' : `change ${policy.change}${policy.exact ? '' : ' (by its time)'}`
  lines.push(`policy then: ${then}${since === '' ? '' : `; since then changed: ${since}`}`)
  return lines.join('\n')
}

/** Says in lines what a decision held and used of each unit; none without units. */
function unitLines(decision: Explanation): string[] {
  const { rows, what, known } = decisionUnits(decision)
  if (rows.length === 0) return []
  const cells = rows.map(({ unit, held, used }) => {
    const money = decision.prices.find(({ card }) => card === unit)?.currency
    return [unit, countCell(held, money), countCell(used, money)]
  })
  const labels = Object.entries(decision.dims).map(([name, value]) => `${name}=${value}`)
  const meter = decision.meter === '' ? [] : [`meter ${decision.meter}`]
  return [
    textTable([['UNIT', 'HELD', what.toUpperCase()], ...cells]),
    `${what.toLowerCase()}: ${[known, ...meter, ...labels].join(' · ')}`,
  ]
}

/** Says in lines how what it used was priced; none without a rate card. */
function priceLines({ prices }: Explanation): string[] {
  const cells = prices.map(({ unit, quantity, price, amount, currency, entry, from }) => {
    return [unit, countCell(quantity), price, `${amount} ${currency}`, entry || 'every request', momentCell(from)]
  })
  return cells.length === 0 ? [] : [textTable([['PRICED', 'QUANTITY', 'PRICE', 'AMOUNT', 'ENTRY', 'SINCE'], ...cells])]
}

/** Explains one decision: why it came out as it did, and what would have admitted it. */
export async function explainDecision(
  named: string | undefined,
  options: WhyOptions,
  context: CommandContext,
): Promise<void> {
  const id = await idOf(named, options, context)
  const found = await consoleAnswer<Explanation>(context, options, {
    path: `/v1/decisions/${encodeURIComponent(id)}`,
    comesWithinMs: meteredWithinMs,
  })
  context.print(
    options.json
      ? JSON.stringify(found)
      : [explanationText(found), ...unitLines(found), ...priceLines(found)].join('\n'),
  )
}
