import type { OutcomeRow, Outcomes } from '@weir/api/usage.ts'
import { count, length, percent } from '@weir/core/format.ts'
import { pathOf, useAnswer } from '../api.ts'
import { stepLabel, tickLabel } from '../format.ts'
import { html } from '../html.ts'
import { setParams, useLocation } from '../location.ts'
import { Chart } from '../parts/chart.ts'
import { Field } from '../parts/field.ts'
import { columnNames, filtersOf } from '../parts/filters.ts'
import { Panel } from '../parts/panel.ts'
import { showSpan, useSpan } from '../parts/span.ts'
import { type Column, Table } from '../parts/table.ts'
import { Subject, valueName } from '../parts/words.ts'

const ms = (value: number | null | undefined) => (value === null || value === undefined ? '–' : length(value))
const groupings = { route: 'by route', subject: 'by subject', method: 'by method' }

const columns = (by: string): readonly Column<OutcomeRow>[] => [
  {
    name: columnNames[by] ?? by,
    isPlain: true,
    cell: (row) =>
      by === 'subject' ? html`<${Subject} id=${row.subject ?? ''} />` : valueName(by, row[by as 'route'] ?? ''),
  },
  { name: 'Answers', isNumber: true, cell: ({ count: all }) => count(all) },
  { name: '4xx', isNumber: true, cell: ({ count: all, status_4xx }) => percent(Number(status_4xx), Number(all)) },
  { name: '5xx', isNumber: true, cell: ({ count: all, status_5xx }) => percent(Number(status_5xx), Number(all)) },
  { name: 'p50', isNumber: true, isMinor: true, cell: ({ p50_ms }) => ms(p50_ms) },
  { name: 'p90', isNumber: true, isMinor: true, cell: ({ p90_ms }) => ms(p90_ms) },
  { name: 'p99', isNumber: true, cell: ({ p99_ms }) => ms(p99_ms) },
]

/** How upstreams answered, and how fast. */
export function AnswersPanels({ fixed = {} }: { readonly fixed?: Readonly<Record<string, string>> }) {
  const { params } = useLocation()
  const { range, step, zone, label } = useSpan()
  const given = params.get('answers_by') ?? 'route'
  const by = Object.hasOwn(groupings, given) ? given : 'route'
  const asked = { ...range, time_zone: zone, ...filtersOf(params, ['subject', 'route', 'method']), ...fixed }
  const coarse = step === 'minute' ? 'quarter_hour' : step
  const chartPath = pathOf('/v1/outcomes', { ...asked, step: coarse })
  const listPath = pathOf('/v1/outcomes', { ...asked, step: 'total', by })
  const nothing = ({ rows }: Outcomes) => (rows.length === 0 ? 'No upstream responses in this period.' : undefined)
  const tools = html`<${Field} isTool class="small" label="By" options=${groupings} value=${by} onValue=${(one: string) => setParams({ answers_by: one })} />`
  const times = (rows: readonly OutcomeRow[]) =>
    (['p50_ms', 'p99_ms'] as const).map((name) => ({
      name: name === 'p50_ms' ? 'p50' : 'p99',
      kind: name === 'p50_ms' ? 'g1' : 'g2',
      values: rows.map((row) => row[name]),
    }))
  const begins = (rows: readonly OutcomeRow[]) => rows.map(({ ts = '' }) => Date.parse(ts))
  return html`
    <${Panel} title=${`Latency, ${label}`} asked=${useAnswer<Outcomes>(chartPath)} path=${chartPath} rows=${11} empty=${nothing}>
      ${({ rows }: Outcomes) => html`<${Chart} title="Latency" shape="lines" zone=${zone} begins=${begins(rows)} endMs=${begins(rows).at(-1) ?? 0} label=${(at: number) => stepLabel(rows[at]?.ts ?? '', coarse, zone)} tick=${(at: number, isDay: boolean) => tickLabel(at, isDay, zone)} series=${times(rows)} write=${ms} onSpan=${showSpan} note="From the head of a request to the end of its answer, in milliseconds." />`}
    <//>
    <${Panel} title="Answers" asked=${useAnswer<Outcomes>(listPath)} path=${listPath} rows=${6} empty=${nothing} tools=${tools}>
      ${({ rows }: Outcomes) => html`<${Table} caption="Answers" columns=${columns(by)} rows=${rows.toSorted((a, b) => Number(b.count) - Number(a.count))} keyOf=${(_: OutcomeRow, at: number) => String(at)} />`}
    <//>
  `
}
