import type { DecisionPage, ListedDecision } from '@weir/api/decisions.ts'
import { count } from '@weir/core/format.ts'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, useLocation } from '../location.ts'
import { columnNames, Facet, Filters, filtersOf } from '../parts/filters.ts'
import { Panel } from '../parts/panel.ts'
import { NothingHere, useSpan } from '../parts/span.ts'
import { type Column, PagedTable } from '../parts/table.ts'
import { Subject, Time, Verdict, valueName } from '../parts/words.ts'

/** Decisions one by one. */
export const decisionColumns: readonly Column<ListedDecision>[] = [
  {
    name: 'Time',
    isPlain: true,
    cell: ({ id, ts }) => html`<a href=${hrefOf(`/decisions/${id}`)}><${Time} at=${ts} /></a>`,
  },
  {
    name: 'Outcome',
    isPlain: true,
    cell: ({ outcome, mode, reason }) => html`<${Verdict} outcome=${outcome} mode=${mode} reason=${reason} />`,
  },
  { name: 'Subject', isPlain: true, cell: ({ subject }) => html`<${Subject} id=${subject} />` },
  {
    name: 'Limit',
    isPlain: true,
    cell: ({ denied_by, reason }) =>
      denied_by === ''
        ? html`<${Facet} name="reason" value=${reason === 'ok' ? '' : reason} />`
        : html`<${Facet} name="denied_by" value=${denied_by} />`,
  },
  {
    name: 'Route',
    isPlain: true,
    cell: ({ route }) => html`<${Facet} name="route" value=${route} text=${valueName('route', route)} />`,
  },
  {
    name: 'Status',
    isNumber: true,
    cell: ({ outcome_record: answer }) => answer && html`<${Facet} name="status" value=${String(answer.status)} />`,
  },
  {
    name: 'Units',
    isNumber: true,
    cell: ({ cost, count: times }) => (times > 1 ? `${count(cost)} × ${count(times)}` : count(cost)),
  },
  { name: 'Key', isMinor: true, cell: ({ key_id }) => html`<${Facet} name="key_id" value=${key_id} />` },
  { name: 'Address', isMinor: true, cell: ({ ip }) => html`<${Facet} name="ip" value=${ip} />` },
]

/** What decisions are filtered by. */
export const decisionFilters = [
  'outcome',
  'subject',
  'denied_by',
  'route',
  'key_id',
  'plan',
  'reason',
  'status',
  'ip',
] as const
const [dayMs, narrowMs] = [86_400_000, 31 * 86_400_000]

/** The list for a question; `fixed` is what the page itself asks for. */
export function DecisionList(props: {
  readonly fixed?: Readonly<Record<string, string>>
  readonly title?: string
  readonly rowsMax?: number
}) {
  const { fixed = {}, title = 'Decisions', rowsMax = 50 } = props
  const { params } = useLocation()
  const { range, ms, label, zone } = useSpan()
  const given = { ...filtersOf(params, decisionFilters), ...fixed }
  const isNarrow = [given.subject, given.key_id, given.ip].some((one) => (one?.length ?? 0) > 0)
  // Raw rows are read: a day of all, a month of one.
  const isCut = ms > (isNarrow ? narrowMs : dayMs)
  const within = isCut ? { from: isNarrow ? 'now-30d' : 'now-24h' } : range
  const path = pathOf('/v1/decisions', {
    ...within,
    ...given,
    time_zone: zone,
    limit: String(rowsMax),
    after: params.get('after') ?? '',
  })
  const asked = useAnswer<DecisionPage>(path)
  const empty = ({ rows }: DecisionPage) =>
    rows.length === 0
      ? html`<${NothingHere} what="No decisions match these filters in this period." mostMs=${isNarrow ? narrowMs : dayMs} />`
      : undefined
  // What is the same in every row has no column.
  const same = Object.keys(fixed).map((one) => columnNames[one])
  const columns = decisionColumns.filter(({ name }) => !same.includes(name))
  const span = isCut ? (isNarrow ? '30 days' : '24 hours') : label
  return html`<${Panel} title=${`${title}, ${span}`} asked=${asked} path=${path} rows=${Math.min(24, rowsMax)} empty=${empty}>
    ${(data: DecisionPage) => html`<${PagedTable} caption=${title} columns=${columns} rows=${data.rows} next=${data.next} keyOf=${({ id }: ListedDecision) => id} />`}
  <//>`
}

export function DecisionsPage() {
  return html`
    <h1>Decisions</h1>
    <${Filters} names=${decisionFilters} />
    <${DecisionList} />
  `
}
