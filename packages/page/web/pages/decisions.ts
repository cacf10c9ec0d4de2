import type { DecisionRow, Decisions } from '../answers.ts'
import { pathOf, useAnswer } from '../api.ts'
import { count } from '../format.ts'
import { html } from '../html.ts'
import { Panel } from '../parts/panel.ts'
import { useSpan } from '../parts/span.ts'
import { type Column, Pages, Table } from '../parts/table.ts'
import { Subject, Time, Verdict } from '../parts/words.ts'
import { hrefOf, setParams, usePlace } from '../place.ts'

/** Decisions one by one. */
export const decisionColumns: readonly Column<DecisionRow>[] = [
  { name: 'Time', cell: ({ id, ts }) => html`<a href=${hrefOf(`/decisions/${id}`)}><${Time} at=${ts} /></a>` },
  { name: '', cell: ({ outcome, mode }) => html`<${Verdict} outcome=${outcome} mode=${mode} />` },
  { name: 'Subject', cell: ({ subject }) => html`<${Subject} id=${subject} />` },
  { name: 'Route', cell: ({ route }) => route },
  { name: 'Limit', cell: ({ denied_by, reason }) => denied_by || (reason === 'ok' ? '' : reason) },
  {
    name: 'Units',
    isNumber: true,
    cell: ({ cost, count: times }) => (times > 1 ? `${cost} × ${count(times)}` : count(cost)),
  },
  { name: 'Address', cell: ({ ip }) => ip },
]

const filters = ['subject', 'outcome', 'denied_by', 'route', 'key_id', 'plan', 'reason', 'ip'] as const
/** Without a subject, key or address the API looks at a day at most. */
const wide = { '1h': 'now-1h', '24h': 'now-24h' } as const

/** The list for a question; `fixed` is what the page itself asks for. */
export function DecisionList({ fixed = {} }: { readonly fixed?: Readonly<Record<string, string>> }) {
  const { params } = usePlace()
  const { name, from, zone } = useSpan()
  const given = Object.fromEntries(filters.map((one) => [one, params.getAll(one)]))
  const isNarrow =
    [given.subject, given.key_id, given.ip].some((one) => (one?.length ?? 0) > 0) || fixed.subject !== undefined
  const since = isNarrow ? from : wide[name === '1h' ? '1h' : '24h']
  const after = params.get('after')
  const path = pathOf('/v1/decisions', {
    from: since,
    ...given,
    ...fixed,
    time_zone: zone,
    limit: '50',
    after: after ?? '',
  })
  const asked = useAnswer<Decisions>(path)
  const empty = ({ rows }: Decisions) =>
    rows.length === 0 ? 'No decision in this span with these filters.' : undefined
  return html`<${Panel} title=${isNarrow ? 'Decisions' : `Decisions, ${name === '1h' ? 'last hour' : 'last 24 hours'}`} asked=${asked} path=${path} rows=${12} empty=${empty}>
    ${(data: Decisions) =>
      html`<div class="stack">
        <${Table} caption="Decisions" columns=${decisionColumns} rows=${data.rows} keyOf=${({ id }: DecisionRow) => id} />
        <${Pages} after=${after} next=${data.next} onPage=${(next: string | undefined) => setParams({ after: next })} />
      </div>`}
  <//>`
}

export function DecisionsPage() {
  const { params } = usePlace()
  const change = (name: string) => (event: Event) =>
    setParams({ [name]: (event.currentTarget as HTMLInputElement).value.trim(), after: undefined })
  return html`
    <h1>Decisions</h1>
    <div class="row">
      <label>which
        <select value=${params.get('outcome') ?? ''} onChange=${change('outcome')}>
          <option value="">all</option><option value="deny">refused</option><option value="allow">allowed</option>
        </select>
      </label>
      <input aria-label="Subject" placeholder="subject" value=${params.get('subject') ?? ''} onChange=${change('subject')} />
      <input aria-label="Limit that refused" placeholder="limit" value=${params.get('denied_by') ?? ''} onChange=${change('denied_by')} />
      <input aria-label="Route" placeholder="route" value=${params.get('route') ?? ''} onChange=${change('route')} />
      <input aria-label="Address" placeholder="address" value=${params.get('ip') ?? ''} onChange=${change('ip')} />
    </div>
    <${DecisionList} />
  `
}
