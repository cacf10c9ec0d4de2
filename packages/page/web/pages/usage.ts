import type { Usage, UsageRow } from '@weir/api/usage.ts'
import { pathOf, useAnswer } from '../api.ts'
import { change, count } from '../format.ts'
import { html } from '../html.ts'
import { hrefOf, setParams, useLocation } from '../location.ts'
import { Field } from '../parts/field.ts'
import { Filters, filtersOf } from '../parts/filters.ts'
import { Panel } from '../parts/panel.ts'
import { rangeBefore, useSpan } from '../parts/span.ts'
import { Table } from '../parts/table.ts'
import { Parts } from '../parts/tabs.ts'
import { type Measure, measureNames, UsageChart } from '../parts/usage-chart.ts'
import { usageColumns } from '../parts/usage-columns.ts'
import { AnswersPanels } from './answers-of-upstreams.ts'
import { asFilter } from './subjects.ts'

const dimensions = ['outcome', 'subject', 'route', 'denied_by', 'key_id', 'plan', 'method'] as const
const groupings: Readonly<Record<string, string>> = {
  subject: 'by subject',
  route: 'by route',
  denied_by: 'by limit',
  key_id: 'by key',
  plan: 'by plan',
  method: 'by method',
  outcome: 'by outcome',
  'subject,route': 'by subject and route',
  'subject,denied_by': 'by subject and limit',
  'subject,key_id': 'by subject and key',
}
const tops = { 5: 'the first 5', 10: 'the first 10', 20: 'the first 20', 50: 'the first 50', 200: 'the first 200' }
/** Lines of a chart that can be told apart. */
const linesMax = 6

const upper = (text: string) => text.replace(/^./, (first) => first.toUpperCase())

const rowKey = (by: readonly string[]) => (row: UsageRow, at: number) =>
  `${at} ${by.map((name) => row[name as 'subject']).join(' ')}`

/** What the address asks: which subjects, by which columns, how many. */
function useQuestion() {
  const { params } = useLocation()
  const span = useSpan()
  const by = params.get('by') ?? 'subject'
  const isComparing = params.get('compare') === 'previous'
  const given = { ...span.range, time_zone: span.zone, ...filtersOf(params, dimensions) }
  const isMeasure = (name: string | null): name is Measure => name !== null && Object.hasOwn(measureNames, name)
  const asked = params.get('measure')
  return {
    by,
    isComparing,
    given,
    span,
    measure: isMeasure(asked) ? asked : 'cost',
    isSplit: params.get('split') !== 'off',
    top: params.get('top') ?? '20',
    order: params.get('order') ?? '-cost',
  }
}
type Question = ReturnType<typeof useQuestion>

function Tools({ by, top, measure, isComparing, isSplit }: Question) {
  const set = (name: string) => (value: string) => setParams({ [name]: value, after: undefined })
  const check = (name: string, on: string | undefined, off: string | undefined) => (event: Event) =>
    setParams({ [name]: (event.currentTarget as HTMLInputElement).checked ? on : off })
  return html`<div class="row">
    <${Field} isTool label="Measure" options=${measureNames} value=${measure} onValue=${set('measure')} />
    <${Field} isTool label="By" options=${groupings} value=${by} onValue=${set('by')} />
    <${Field} isTool label="How many" options=${tops} value=${top} onValue=${set('top')} />
    <label><input type="checkbox" checked=${isComparing} onChange=${check('compare', 'previous', undefined)} />compare with before</label>
    <label><input type="checkbox" checked=${isSplit} disabled=${measure === 'decisions' || by.includes(',')} onChange=${check('split', undefined, 'off')} />a line each</label>
  </div>`
}

/** The same question as a file, whole: however many rows it has. */
function Exports({ question: { by, given } }: { readonly question: Question }) {
  const path = (format: string) => pathOf('/v1/usage', { ...given, step: 'total', by, format })
  const formats = { csv: 'CSV', jsonl: 'JSON lines', parquet: 'Parquet' }
  return html`<span class="row small">Export ${Object.entries(formats).map(([format, name]) => html`<a key=${format} href=${path(format)} download=${`usage.${format}`}>${name}</a>`)}</span>`
}

/** Rows below a group, at most: the group itself leads to all of them. */
const partsMax = 5

/** The first groups; of two columns the first subjects, and below each the largest parts of it. */
function useGroups({ by, given, isComparing, top, order: wanted }: Question) {
  const order = wanted === '-change' && !isComparing ? '-cost' : wanted
  const [first = by, second] = by.split(',')
  const compare = isComparing ? 'previous' : undefined
  const question = { ...given, numbers: 'text', step: 'total', order, compare }
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
  const { by, isComparing, given, span, measure, isSplit, top } = question
  const steps = { ...given, numbers: 'text', step: span.step }
  const chartPath = pathOf('/v1/usage', { ...steps, fill: 'zero' })
  const isByLine = isSplit && measure !== 'decisions' && !by.includes(',')
  const linesPath = pathOf('/v1/usage', { ...steps, by, top: `${linesMax}`, limit: '10000', order: `-${measure}` })
  const beforePath = pathOf('/v1/usage', { ...steps, ...rangeBefore(span), fill: 'zero' })
  const chart = useAnswer<Usage>(chartPath)
  const lines = useAnswer<Usage>(isByLine ? linesPath : undefined)
  const before = useAnswer<Usage>(isComparing && !isByLine ? beforePath : undefined)
  const groups = useGroups(question)
  const title = `${upper(measure === 'decisions' ? measure : measureNames[measure])}${isByLine ? ` ${groupings[by]}` : ''}, ${span.label}`
  const nothing = ({ totals }: Usage) =>
    totals.count === '0'
      ? html`Nothing in this span with these filters. <a class="button" href=${hrefOf('/usage', { span: '365d' })}>Look at a whole year</a>`
      : undefined
  const columns = by.split(',')
  const listTitle = `${upper(groupings[by] ?? by)}, the first ${top}`
  return html`
    <${Panel} title=${title} asked=${chart} path=${isByLine ? linesPath : chartPath} rows=${11} empty=${nothing}>
      ${(data: Usage) => html`<${UsageChart} usage=${data} title=${title} measure=${measure} groups=${lines.data} by=${by} before=${before.data} />`}
    <//>
    <${Panel} title=${listTitle} asked=${groups.asked} path=${groups.path} rows=${22} empty=${nothing} tools=${html`<${Exports} question=${question} />`}>
      ${(data: Usage) => html`<div class="stack">
        <${Table} caption="Usage by group" columns=${usageColumns(columns, isComparing, data.totals.cost)} rows=${groups.rows} keyOf=${rowKey(columns)} order=${groups.order} onOrder=${(one: string) => setParams({ order: one })} />
        <p class="quiet">In all ${count(data.totals.cost)} units in ${count(data.totals.count)} decisions, ${count(data.totals.denied)} of them refused${data.totals.change === undefined ? '' : `; units ${change(data.totals.change)} against the span before`}.</p>
      </div>`}
    <//>
  `
}

export function UsagePage() {
  const question = useQuestion()
  const isAnswers = useLocation().params.get('view') === 'answers'
  return html`
    <div class="head"><h1>Usage</h1></div>
    <${Parts} of=${{ decisions: 'Decisions', answers: 'Answers of upstreams' }} label="Of what" param="view" />
    ${!isAnswers && html`<${Tools} ...${question} />`}
    <${Filters} names=${isAnswers ? ['subject', 'route', 'method'] : dimensions} />
    ${isAnswers ? html`<${AnswersPanels} />` : html`<${DecisionsView} question=${question} />`}
  `
}
