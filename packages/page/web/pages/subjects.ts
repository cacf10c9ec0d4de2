import type { UsageRow } from '@weir/api/usage.ts'
import type { UtilizationRow } from '@weir/api/utilization.ts'
import { change, count, percent } from '@weir/core/format.ts'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, setParams, useLocation } from '../location.ts'
import { BlockCaller } from '../parts/block-caller.ts'
import { comparisonOf } from '../parts/comparison.ts'
import { ExportCsv, partOf } from '../parts/export.ts'
import { Field } from '../parts/field.ts'
import { RaiseLimit } from '../parts/limits-now.ts'
import { Panel } from '../parts/panel.ts'
import { useSpan } from '../parts/span.ts'
import { actionsOf, type Column, Table } from '../parts/table.ts'
import { Meter, Subject, Time } from '../parts/words.ts'

/** A subject of the list, as far as both answers have it. */
interface Seen {
  readonly subject: string
  readonly usage: UsageRow | undefined
  readonly near: UtilizationRow | undefined
}

/** A quarter hour and its rollup: a peak that is older is history, unless its period still runs. */
const currentMs = 20 * 60_000

function Near({ near }: { readonly near: UtilizationRow }) {
  const { limit, share, used, size, refused, at, runs_out: out } = near
  const isPast = Date.now() - Date.parse(at) > currentMs && out === null
  const isFull = share >= 1 && !isPast
  return html`<${Meter} used=${Number(used)} size=${Number(size)} isPast=${isPast} /> ${isFull ? '✕ ' : ''}${limit} ${percent(share, 1)}${
    isFull ? ', full' : Number(refused) > 0 ? `, refused ${count(refused)}×` : ''
  }${out !== null && Date.parse(out) > Date.now() && html`<span class="small quiet">, runs out <${Time} at=${out} /></span>`}`
}

const againstPrevious = new URLSearchParams({ compare: 'previous' })
const nearestFirst = '-share'
const columnsFor = (compared: string, again: () => void): readonly Column<Seen>[] => [
  {
    name: 'Subject',
    isPlain: true,
    cell: ({ subject }) => html`<${Subject} id=${subject} />`,
    csv: ({ subject }) => subject,
  },
  {
    name: 'Units',
    isNumber: true,
    order: '-cost',
    cell: ({ usage }) => count(usage?.cost),
    csv: ({ usage }) => usage?.cost,
  },
  {
    name: `± ${compared}`,
    isNumber: true,
    order: '-change',
    cell: ({ usage }) => change(usage?.change),
    csv: ({ usage }) => usage?.change,
  },
  {
    name: 'Nearest limit',
    isPlain: true,
    order: nearestFirst,
    cell: ({ near }) => (near === undefined ? '–' : html`<${Near} near=${near} />`),
    csv: ({ near }) => near && `${near.limit} ${percent(near.share, 1)}`,
  },
  {
    name: 'Decisions',
    isNumber: true,
    isMinor: true,
    order: '-count',
    cell: ({ usage }) => count(usage?.count),
    csv: ({ usage }) => usage?.count,
  },
  {
    name: 'Refused',
    isNumber: true,
    order: '-denied',
    cell: ({ usage }) => count(usage?.denied),
    csv: ({ usage }) => usage?.denied,
  },
  {
    name: 'Refused %',
    isNumber: true,
    isMinor: true,
    cell: ({ usage }) => (usage === undefined ? '–' : percent(Number(usage.denied), Number(usage.count))),
    csv: ({ usage }) => usage && partOf(Number(usage.denied), Number(usage.count)),
  },
  actionsOf(
    ({ subject, near }) => html`
      ${near !== undefined && html`<${RaiseLimit} id=${subject} limit=${{ name: near.limit, size: Number(near.size) }} onDone=${again} />`}
      ${!subject.startsWith('_') && html`<${BlockCaller} by="subject" value=${subject} label="Block" />`}
    `,
  ),
]

/** As many of these subjects as one address of the API takes, with its other parameters: 100 of a filter. */
export function asFilter(all: readonly string[]): readonly string[] {
  const subjects = all.slice(0, 100)
  const end = subjects.findIndex((_, at) => encodeURIComponent(subjects.slice(0, at + 1).join()).length > 8_000)
  return end < 0 ? subjects : subjects.slice(0, end)
}

/** A limit that has left the policy is not the nearest one. */
const isInForce = (row: UtilizationRow | UsageRow) => !('removed' in row && row.removed)

type Given = Readonly<Record<string, string | undefined>>

/**
 * The subjects in this order: `/v1/utilization` has it by limits, `/v1/usage` by sums. What the other one says of them
 * is asked next.
 */
function useSubjects(
  order: string,
  share: string,
  compare: string,
  { given, begins }: Readonly<Record<'given' | 'begins', Given>>,
) {
  const texts = { ...given, numbers: 'text' }
  const usageOf = { ...texts, step: 'total', by: 'subject', compare }
  const path =
    order === nearestFirst
      ? pathOf('/v1/utilization', { ...texts, ...begins, order, share_from: share })
      : pathOf('/v1/usage', { ...usageOf, ...begins, top: '100', other: 'false', order })
  const asked = useAnswer<{ readonly rows: readonly (UtilizationRow | UsageRow)[] }>(path)
  const all = [...new Set(asked.data?.rows.filter(isInForce).map(({ subject = '' }) => subject))]
  const subject = asFilter(all)
  const next =
    order === nearestFirst
      ? pathOf('/v1/usage', { ...usageOf, subject })
      : pathOf('/v1/utilization', { ...texts, subject, limit: '1000' })
  const more = useAnswer<{ readonly rows: readonly (UtilizationRow | UsageRow)[] }>(all.length === 0 ? undefined : next)
  const rows = [...(asked.data?.rows ?? []), ...(more.data?.rows ?? [])].filter(isInForce)
  const seen = all.map((one): Seen => {
    const own = rows.filter((row) => row.subject === one)
    return {
      subject: one,
      usage: own.find((row): row is UsageRow => 'denied' in row),
      near: own.find((row): row is UtilizationRow => 'limit' in row),
    }
  })
  // Rows whose half comes later would change under the reader.
  const isWhole = all.length === 0 || more.data !== undefined || more.error !== undefined
  return { path, asked: { ...asked, data: isWhole ? asked.data : undefined, error: asked.error ?? more.error }, seen }
}

/** Subjects of the span: the largest first, or those whose name begins with what is typed. */
export function SubjectsPage() {
  const { params } = useLocation()
  const span = useSpan()
  const { range, zone, label } = span
  const comparison = comparisonOf(againstPrevious, span, Date.now())
  const prefix = params.get('subject_prefix') ?? ''
  const share = params.get('share_from') ?? ''
  const order = share === '' ? (params.get('order') ?? '-cost') : nearestFirst
  const begins = { subject_prefix: prefix }
  const given = { ...range, time_zone: zone }
  const { path, asked, seen } = useSubjects(order, share, comparison?.compare ?? 'previous', { given, begins })
  const whoElse = () =>
    share === ''
      ? html`No requests in this period. <a class="button" href=${hrefOf('/subjects', { span: '365d' })}>Show the last year</a>`
      : 'No subject used 80% of a limit in this period.'
  const narrow = (event: Event) =>
    setParams({ share_from: (event.currentTarget as HTMLInputElement).checked ? '0.8' : undefined })
  const columns = columnsFor(comparison?.label ?? 'before', asked.again)
  const sort = (one: string) => setParams({ order: one, share_from: undefined })
  return html`
    <div class="head">
      <h1>Subjects</h1>
      <div class="row">
        <${Field} isTool label="Name starts with" on="change" suggest="subject" value=${prefix} onValue=${(one: string) => setParams({ subject_prefix: one })} />
        <label><input type="checkbox" checked=${share !== ''} onChange=${narrow} /> at least 80%</label>
        <${ExportCsv} name=${`subjects ${label}`} columns=${columns} rows=${seen} />
      </div>
    </div>
    <${Panel} title=${`Subjects, ${label}`} asked=${asked} path=${path} rows=${22} empty=${() => (seen.length > 0 ? undefined : whoElse())}>
      ${() => html`<div class="stack">
        <${Table} caption="Subjects" columns=${columns} rows=${seen} keyOf=${({ subject }: Seen) => subject} order=${order} onOrder=${sort} />
        <p class="quiet small">Only subjects with requests in this period are listed. For others, use search or the <a href=${hrefOf('/policy', { kind: 'subjects' })}>policy</a>.</p>
      </div>`}
    <//>
  `
}
