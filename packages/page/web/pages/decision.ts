import { decisionUnits } from '@weir/api/decision-units.ts'
import type { ExplainedLimit, Explanation, Remedy } from '@weir/api/decisions.ts'
import { count, counted, length, quantity, wait } from '@weir/core/format.ts'
import { useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { Copy, Panel } from '../parts/panel.ts'
import { Differences } from '../parts/settings.ts'
import { type Column, Table } from '../parts/table.ts'
import { Because, Meter, Part, Subject, Time, Verdict, valueName } from '../parts/words.ts'
import { may } from '../session.ts'

/** How many plans are named, at most. */
const plansShown = 3

function HintWords(hint: Remedy) {
  const { how, ms = 0, at_most: most, limit = '', at_least: least, plan = '', together_with: others = [] } = hint
  const { assumed_unused: unused = [] } = hint
  const assumed =
    unused.length === 0 ? '' : ` (if ${unused.join(' and ')} ${unused.length === 1 ? 'is' : 'are'} unused)`
  if (how === 'wait') return html`waiting ${wait(ms)}`
  if (how === 'cost') return html`a cost of ${count(most)} or less${assumed}`
  if (how === 'plan') return html`the plan <${Part} kind="plans" name=${plan} />${assumed}`
  const also = others.length === 0 ? '' : `, together with more of ${others.join(', ')}`
  return html`a ${how} of ${count(least)} or more for <${Part} kind="limits" name=${limit} />${also}${assumed}`
}

/** What would have helped: each by itself, and of plans the first. */
function Hints({ hints }: { readonly hints: readonly Remedy[] }) {
  const plans = hints.filter(({ how }) => how === 'plan')
  const shown = [...hints.filter(({ how }) => how !== 'plan'), ...plans.slice(0, plansShown)]
  const more = plans.length - plansShown
  return html`<p>Would have allowed it: ${shown.map((one, at) => html`${at > 0 && ' · '}<${HintWords} ...${one} />`)}${more > 0 && ` · ${counted(more, 'more plan')}`}</p>`
}

const countedBy = 'Counted by'
const limitColumns: readonly Column<ExplainedLimit>[] = [
  {
    name: 'Limit',
    isPlain: true,
    cell: ({ name, refused }) =>
      html`<b><${Part} kind="limits" name=${name} /></b> ${refused && html`<span class="word refused">✕<span class="hidden"> refused</span></span>`}`,
  },
  {
    name: 'Used',
    isPlain: true,
    cell: ({ used, size, currency }) =>
      used === null
        ? html`<span class="quiet">not recorded</span>`
        : html`<span class="row tight"><${Meter} used=${used} size=${size} />${quantity(used, currency)} of ${quantity(size, currency)}</span>`,
  },
  { name: 'Needed', isNumber: true, cell: ({ needed, currency }) => quantity(needed, currency) },
  { name: 'Left', isNumber: true, cell: ({ remaining, currency }) => quantity(remaining, currency) },
  { name: 'Resets', cell: ({ reset_at }) => reset_at !== undefined && html`<${Time} at=${reset_at} />` },
  { name: 'Source', cell: ({ because = [] }) => html`<${Because} words=${because} />` },
  {
    name: countedBy,
    isMinor: true,
    cell: ({ by }) =>
      Object.entries(by)
        .map(([name, value]) => `${name} ${value}`)
        .join(', '),
  },
]

/** A column without anything in it is left out. */
const columnsFor = (limits: readonly ExplainedLimit[]) =>
  limits.some(({ by }) => Object.keys(by).length > 0)
    ? limitColumns
    : limitColumns.filter(({ name }) => name !== countedBy)

type UnitOf = ReturnType<typeof decisionUnits>['rows'][number]
const unitColumns = (what: string, { limits, prices }: Explanation): readonly Column<UnitOf>[] => {
  const currencyOf = (unit: string) =>
    prices.find(({ card }) => card === unit)?.currency ?? limits.find((limit) => limit.unit === unit)?.currency
  return [
    { name: 'Unit', isPlain: true, cell: ({ unit }) => html`<b>${unit}</b>` },
    { name: 'Held', isNumber: true, cell: ({ unit, held }) => quantity(held, currencyOf(unit)) },
    { name: what, isNumber: true, cell: ({ unit, used }) => quantity(used, currencyOf(unit)) },
  ]
}

type PriceLine = Explanation['prices'][number]
const priceColumns: readonly Column<PriceLine>[] = [
  { name: 'Priced', isPlain: true, cell: ({ unit }) => html`<b>${unit}</b>` },
  { name: 'Quantity', isNumber: true, cell: ({ quantity: used }) => count(used) },
  { name: 'Price', isNumber: true, cell: ({ price }) => price },
  { name: 'Amount', isNumber: true, cell: ({ amount, currency }) => `${amount} ${currency}` },
  { name: 'Entry', cell: ({ entry }) => entry || 'every request' },
  { name: 'Since', isMinor: true, cell: ({ from }) => html`<${Time} at=${from} />` },
]

/** What a decision held and used of each unit, if any, how that is known, and how it was priced. */
function Units({ data }: { readonly data: Explanation }) {
  const { prices } = data
  const { rows, what, known } = decisionUnits(data)
  if (rows.length === 0) return ''
  return html`<${Table} caption="Units" columns=${unitColumns(what, data)} rows=${rows} keyOf=${({ unit }: UnitOf) => unit} />
    ${known !== '' && html`<p class="quiet">${what}: ${known}.</p>`}
    ${prices.length > 0 && html`<${Table} caption="Prices" columns=${priceColumns} rows=${prices} keyOf=${({ card, unit }: PriceLine) => `${card} ${unit}`} />`}`
}

function Policy({ policy }: { readonly policy: NonNullable<Explanation['policy']> }) {
  const { exact, change, at, since_changed: changed } = policy
  return html`<div class="stack">
    <p>
      ${exact ? 'The policy at the time' : 'Probably the policy at the time'}:
      ${change === undefined ? ' older than the history.' : html` <a href=${hrefOf(`/changes/${change}`)}>change ${change.slice(0, 13)}…</a> ${at !== undefined && html`of <${Time} at=${at} />`}`}
    </p>
    ${
      changed.length === 0
        ? change !== undefined && html`<p class="quiet">Unchanged since.</p>`
        : html`<p>Since then:</p>
            <${Differences} of=${changed.map(({ now: after, ...one }) => ({ ...one, after }))} />`
    }
  </div>`
}

function Facts({ data }: { readonly data: Explanation }) {
  const { outcome_record: answered } = data
  const corrected = data.corrections.filter(({ adjustment }) => adjustment !== 0)
  return html`<dl class="facts">
    <dt>Subject</dt><dd><${Subject} id=${data.subject} /></dd>
    <dt>Route</dt><dd>${data.route === '*' ? valueName('route', data.route) : html`<${Part} kind="routes" name=${data.route} />`}${data.method !== '' && !data.route.startsWith(data.method) && ` (${data.method})`}</dd>
    <dt>Cost</dt><dd>${counted(data.cost, 'unit')}${data.count > 1 && `; the record stands for ${count(data.count)} identical requests in that second`}</dd>
    <dt>Plan</dt><dd>${data.plan === '' ? '–' : html`<${Part} kind="plans" name=${data.plan} />`}</dd>
    <dt>Key</dt><dd>${data.key_id === '' ? '–' : html`<code>${data.key_id}</code>`}</dd>
    ${data.meter !== '' && html`<dt>Meter</dt><dd>${data.meter}</dd>`}
    ${Object.entries(data.dims).map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value || 'none'}</dd>`)}
    <dt>Address</dt><dd>${data.ip || 'not recorded'}</dd>
    <dt>Response</dt><dd>${answered ? `${answered.status} after ${length(answered.duration_ms)} ${answered.error}` : 'not recorded'}</dd>
    ${corrected.length > 0 && html`<dt>Corrected</dt><dd>${corrected.map(({ adjustment, count_adjustment: less }) => `${adjustment > 0 ? '+' : ''}${adjustment} units${less === 0 ? '' : `, ${less} requests`}`).join(', ')}</dd>`}
    ${data.alerts.length > 0 && html`<dt>Alerts</dt><dd>${data.alerts.map((id) => html`<a key=${id} href=${hrefOf(`/alerts/${id}`)}>${id.slice(0, 8)}…</a> `)}</dd>`}
  </dl>`
}

function Now({ data }: { readonly data: Explanation }) {
  if (data.now === null)
    return html`<p class="quiet">Redis or the policy is unreachable, or the subject no longer exists.</p>`
  const { allowed, denied_by: by, limits } = data.now
  const currencyOf = (name: string) => data.limits.find((one) => one.name === name)?.currency
  return html`<div class="stack">
    <p>${allowed === null ? 'Unknown.' : allowed ? html`The same request <span class="word allowed">✓ would be allowed</span>.` : html`The same request <span class="word refused">✕ would be refused</span> by ${by}.`}</p>
    ${limits.map(({ name, used, capacity }) => html`<div class="row" key=${name}><b>${name}</b> ${used !== null && html`<${Meter} used=${used} size=${capacity} />`} ${quantity(used, currencyOf(name))} of ${quantity(capacity, currencyOf(name))}</div>`)}
  </div>`
}

const headline = ({ outcome, mode, denied_by: by, reason }: Explanation) => {
  if (outcome === 'deny')
    return html`<span class="word refused headline">${`✕ Refused${by === '' ? `: ${reason.replaceAll('_', ' ')}` : ` by ${by}`}`}</span>`
  return html`<span class="headline"><${Verdict} outcome=${outcome} mode=${mode} reason=${reason} /></span>`
}

/** Why a request was allowed or refused, and what would have admitted it. */
export function DecisionPage({ id }: { readonly id: string }) {
  const path = `/v1/decisions/${encodeURIComponent(id)}`
  const asked = useAnswer<Explanation>(path)
  const { data } = asked
  return html`
    <div class="head">
      <div><h1>Decision</h1><code class="quiet">${id}</code></div>
      <${Copy} text=${location.href} label="Copy link" />
    </div>
    <${Panel} title="Decision" asked=${asked} path=${path} rows=${8}>
      ${(one: Explanation) => html`<div class="stack">
        <div class="row apart">${headline(one)}<${Time} at=${one.ts} isLong /></div>
        <p class="said">${one.summary}</p>
        ${one.blocked_by !== null && one.blocked_by !== undefined && html`<p>The block was set by <a href=${hrefOf(`/decisions/${one.blocked_by.id}`)}>the decision of <${Time} at=${one.blocked_by.ts} /></a>.</p>`}
        ${one.would_have_allowed.length > 0 && html`<${Hints} hints=${one.would_have_allowed} />`}
        ${one.limits.length > 0 && html`<${Table} caption=${one.outcome === 'allow' && one.count > 1 ? 'Limits when most was used' : 'Limits at the time'} columns=${columnsFor(one.limits)} rows=${one.limits} keyOf=${({ name }: ExplainedLimit, at: number) => `${name} ${at}`} />`}
        <${Units} data=${one} />
      </div>`}
    <//>
    ${
      data !== undefined &&
      html`<div class="grid">
        <section class="panel third" aria-label="Request"><header><h2>Request</h2></header><${Facts} data=${data} /></section>
        <section class="panel third" aria-label="Policy at the time"><header><h2>Policy at the time</h2></header>${data.policy === null ? html`<p class="quiet">Unknown.</p>` : html`<${Policy} policy=${data.policy} />`}</section>
        <section class="panel third" aria-label="Now"><header><h2>Now</h2>${may('read') && data.now !== null && html`<a class="small" href=${hrefOf(`/subjects/${encodeURIComponent(data.subject)}`, { tab: 'limits' })}>All limits</a>`}</header><${Now} data=${data} /></section>
      </div>`
    }
    ${asked.error?.status === 404 && html`<p class="note">Every ingress response carries its decision id in the header <code>Weir-Decision</code>.</p>`}
  `
}
