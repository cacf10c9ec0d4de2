import type { Usage, UsageRow } from '@weir/api/usage.ts'
import { change, count, quantity } from '@weir/core/format.ts'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, setParams, useLocation } from '../location.ts'
import { comparisonOf, comparisons } from '../parts/comparison.ts'
import { ExportCsv } from '../parts/export.ts'
import { Field } from '../parts/field.ts'
import { Filters, filtersOf } from '../parts/filters.ts'
import { MeasureField, stepOf, useColumns } from '../parts/measure.ts'
import { Panel } from '../parts/panel.ts'
import { thisMinute, useSpan } from '../parts/span.ts'
import { spanOf } from '../parts/span-range.ts'
import { Table } from '../parts/table.ts'
import { Parts } from '../parts/tabs.ts'
import { measureNames, sumOf, UsageChart } from '../parts/usage-chart.ts'
import { type AnyRow, currencyOf, usageColumns } from '../parts/usage-columns.ts'
import { AnswersPanels } from './answers-of-upstreams.ts'
import { asFilter } from './subjects.ts'

const tops = { 5: 'top 5', 10: 'top 10', 20: 'top 20', 50: 'top 50', 200: 'top 200' }
/** Colours of a chart that can be told apart. */
const linesMax = 6

const upper = (text: string) => text.replace(/^./, (first) => first.toUpperCase())

const rowKey = (by: readonly string[]) => (row: UsageRow, at: number) =>
  `${at} ${by.map((name) => row[name as 'subject']).join(' ')}`

/** Only the decisions themselves have these: a day of all is read, a month of some. */
const ofDecisions = ['reason', 'ip']
const [dayMs, monthMs] = [86_400_000, 31 * 86_400_000]

/** What the address asks: which subjects, by which columns, how many. */
function useQuestion() {
  const { params } = useLocation()
  const by = params.get('by') ?? 'subject'
  const unit = params.get('unit') ?? ''
  const columns = useColumns(unit, [...params.keys(), ...by.split(',')])
  const chosen = useSpan()
  const isNarrow = ['subject', 'key_id', 'ip'].some((name) => params.has(name))
  const isCut =
    unit === '' &&
    [...ofDecisions.filter((name) => params.has(name)), by].some((name) => ofDecisions.includes(name)) &&
    chosen.ms > (isNarrow ? monthMs : dayMs)
  const span = isCut
    ? spanOf(new URLSearchParams({ span: isNarrow ? '30d' : '24h' }), chosen.zone, thisMinute())
    : chosen
  const comparison = comparisonOf(params, span, thisMinute())
  const given = { ...span.range, time_zone: span.zone, unit, ...filtersOf(params, columns.names) }
  const isMeasure = (name: string | null): name is keyof typeof measureNames =>
    name !== null && Object.hasOwn(measureNames, name)
  const asked = params.get('measure')
  const measure = unit !== '' ? 'quantity' : isMeasure(asked) ? asked : 'cost'
  return {
    by,
    comparison,
    compare: params.get('compare') ?? '',
    given,
    span,
    unit,
    columns,
    step: stepOf(unit, span.step),
    measure,
    isSplit: params.get('split') !== 'off',
    top: params.get('top') ?? '20',
    order: params.get('order') ?? `-${sumOf(measure)}`,
  }
}
type Question = ReturnType<typeof useQuestion>

function Tools({ by, top, unit, columns, measure, compare, isSplit }: Question) {
  const set = (name: string) => (value: string) => setParams({ [name]: value, after: undefined })
  const check = (name: string, on: string | undefined, off: string | undefined) => (event: Event) =>
    setParams({ [name]: (event.currentTarget as HTMLInputElement).checked ? on : off })
  return html`<div class="row">
    <${MeasureField} names=${measureNames} measure=${measure} unit=${unit} by=${by} />
    <${Field} isTool label="By" options=${columns.groups} value=${by} onValue=${set('by')} />
    <${Field} isTool label="Top" options=${tops} value=${top} onValue=${set('top')} />
    <${Field} isTool label="Compare to" options=${comparisons} value=${compare} onValue=${set('compare')} />
    <label><input type="checkbox" checked=${isSplit} disabled=${measure === 'decisions' || by.includes(',')} onChange=${check('split', undefined, 'off')} />split</label>
  </div>`
}

/** The whole list as a file of the API, which names it by what it is of, and when. */
function Exports({ question: { by, given, comparison, top, order } }: { readonly question: Question }) {
  const question = { ...given, step: 'total', by, top, order, compare: comparison?.compare }
  const formats = { jsonl: 'JSON lines', parquet: 'Parquet' }
  return html`<span class="row small">${Object.entries(formats).map(([format, words]) => html`<a key=${format} href=${pathOf('/v1/usage', { ...question, format })} download>${words}</a>`)}</span>`
}

/** Rows below a group, at most: the group itself leads to all of them. */
const partsMax = 5

/** The first groups; of two columns the first subjects, and below each the largest parts of it. */
function useGroups({ by, unit, given, comparison, top, order: wanted }: Question) {
  const order = wanted === '-change' && comparison === undefined ? (unit === '' ? '-cost' : '-quantity') : wanted
  const [first = by, second] = by.split(',')
  const question = { ...given, numbers: 'text', step: 'total', order, compare: comparison?.compare }
  const path = pathOf('/v1/usage', { ...question, by: first, top })
  const groups = useAnswer<Usage>(path)
  const subject = asFilter(groups.data?.rows.flatMap((row) => row.subject ?? []) ?? [])
  const isDivided = second !== undefined && subject.length > 0
  const partsPath = isDivided
    ? pathOf('/v1/usage', { ...question, by, subject, top: '1000', other: 'false' })
    : undefined
  const parts = useAnswer<Usage>(partsPath)
  const isThere = partsPath === undefined || parts.data !== undefined || parts.error !== undefined
  const partsOf = (row: UsageRow) => parts.data?.rows.filter((one) => one.subject === row.subject).slice(0, partsMax)
  const rows = groups.data?.rows.flatMap((row) => [row, ...(partsOf(row) ?? [])]) ?? []
  const asked = { ...groups, data: isThere ? groups.data : undefined, error: groups.error ?? parts.error }
  return { path: partsPath ?? path, asked, rows, order }
}

function DecisionsView({ question }: { readonly question: Question }) {
  const { by, unit, columns: known, comparison, given, span, step, measure, isSplit, top } = question
  const steps = { ...given, numbers: 'text', step }
  const chartPath = pathOf('/v1/usage', { ...steps, fill: 'zero' })
  const isByLine = isSplit && measure !== 'decisions' && !by.includes(',')
  const linesPath = pathOf('/v1/usage', { ...steps, by, top: `${linesMax}`, limit: '10000', order: `-${measure}` })
  const beforePath = pathOf('/v1/usage', { ...steps, ...comparison?.range, fill: 'zero' })
  const chart = useAnswer<Usage>(chartPath)
  const lines = useAnswer<Usage>(isByLine ? linesPath : undefined)
  const before = useAnswer<Usage>(comparison === undefined || isByLine ? undefined : beforePath)
  const groups = useGroups(question)
  const of = unit || upper(measure === 'decisions' ? measure : measureNames[measure as 'cost'])
  const grouped = known.groups[by] ?? `by ${by}`
  const title = `${of}${isByLine ? ` ${grouped}` : ''}, ${span.label}`
  const nothing = ({ totals }: Usage) =>
    totals.count === '0'
      ? html`Nothing matches these filters in this period. <a class="button" href=${hrefOf('/usage', { span: '365d', unit })}>Show the last year</a>`
      : undefined
  const columns = by.split(',')
  const totals: AnyRow | undefined = groups.asked.data?.totals
  const total = (unit === '' ? totals?.cost : totals?.quantity) ?? '0'
  const shown = usageColumns(columns, comparison?.label, total, unit, currencyOf(groups.asked.data))
  const listTitle = `${upper(grouped)}, top ${top}`
  return html`
    <${Panel} title=${title} asked=${chart} path=${isByLine ? linesPath : chartPath} rows=${11} empty=${nothing}>
      ${(data: Usage) => html`<${UsageChart} usage=${data} title=${title} measure=${measure} unit=${unit} groups=${lines.data} by=${by} before=${before.data} beforeLabel=${comparison?.label} />`}
    <//>
    <${Panel} title=${listTitle} asked=${groups.asked} path=${groups.path} rows=${22} empty=${nothing} tools=${html`<${Exports} question=${question} /><${ExportCsv} name=${`usage ${unit} by ${columns.join(' ')} ${span.label}`} columns=${shown} rows=${groups.rows} />`}>
      ${(data: Usage) => html`<div class="stack">
        <${Table} caption="Usage by group" columns=${shown} rows=${groups.rows} keyOf=${rowKey(columns)} order=${groups.order} onOrder=${(one: string) => setParams({ order: one })} />
        <p class="quiet">Total: ${quantity(total, currencyOf(data))} ${unit || 'units'}, ${count(data.totals.count)} ${unit === '' ? `decisions, ${count(data.totals.denied)} refused` : 'records'}${data.totals.change === undefined ? '' : `; ${change(data.totals.change)} vs ${comparison?.label}`}.</p>
      </div>`}
    <//>
  `
}

export function UsagePage() {
  const question = useQuestion()
  const isAnswers = useLocation().params.get('view') === 'answers'
  return html`
    <div class="head"><h1>Usage</h1></div>
    <${Parts} of=${{ decisions: 'Decisions', answers: 'Latency & errors' }} label="Usage of" param="view" />
    ${!isAnswers && html`<${Tools} ...${question} />`}
    <${Filters} names=${isAnswers ? ['subject', 'route', 'method'] : question.columns.names} />
    ${isAnswers ? html`<${AnswersPanels} />` : html`<${DecisionsView} question=${question} />`}
  `
}
