import type { Usage } from '@weir/api/usage.ts'
import { count, percent, quantity } from '@weir/core/format.ts'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { useLocation } from '../location.ts'
import { Panel } from './panel.ts'
import { useSpan } from './span.ts'
import { type Column, Table } from './table.ts'
import { type AnyRow, currencyOf } from './usage-columns.ts'
import { Meter, Subject } from './words.ts'

/** Rows of one answer: more subjects than a person looks through. */
const rowsMax = 1_000

/** A subject of a tree, with what it and everyone below it used. */
interface Node {
  readonly subject: string
  readonly depth: number
  readonly used: bigint
  readonly denied: number
}

/** The tree of a subject, each under its parent, and who used most first. Who was moved stands under both parents. */
function nodesOf(rows: readonly AnyRow[], id: string, unit: string): readonly Node[] {
  const [own, others] = [rows.filter(({ subject }) => subject === id), rows.filter(({ subject }) => subject !== id)]
  const below = Map.groupBy(others, ({ parent = '' }) => parent)
  // A team that calls nothing itself has no row of its own: it stands right below.
  const silent = [...below.keys()].filter(
    (parent) => parent !== id && !others.some(({ subject }) => subject === parent),
  )
  const walk = (subject: string, of: readonly AnyRow[], depth: number): readonly Node[] => {
    const children = Map.groupBy(below.get(subject) ?? [], (row) => row.subject ?? '')
    if (depth === 0) for (const parent of silent) children.set(parent, [])
    const trees = [...children].map(([child, its]) => walk(child, its, depth + 1))
    const usedOf = (row: AnyRow) => BigInt((unit === '' ? row.cost : row.quantity) ?? 0)
    const node = {
      subject,
      depth,
      used: of.reduce((sum, row) => sum + usedOf(row), 0n) + trees.reduce((sum, [top]) => sum + (top?.used ?? 0n), 0n),
      denied:
        of.reduce((sum, row) => sum + Number(row.denied ?? 0), 0) +
        trees.reduce((sum, [top]) => sum + (top?.denied ?? 0), 0),
    }
    return [node, ...trees.toSorted(([a], [b]) => Number((b?.used ?? 0n) - (a?.used ?? 0n))).flat()]
  }
  return walk(id, own, 0)
}

const columnsFor = (unit: string, total: bigint, currency: string | undefined): readonly Column<Node>[] => [
  {
    name: 'Subject',
    isPlain: true,
    cell: ({ subject, depth }) => html`<span class=${`level-${depth}`}><${Subject} id=${subject} /></span>`,
  },
  { name: unit || 'Units', isNumber: true, cell: ({ used }) => quantity(String(used), currency) },
  {
    name: 'Share',
    isNumber: true,
    isMinor: true,
    cell: ({ used }) =>
      html`<${Meter} used=${Number(used)} size=${Number(total)} /> ${percent(Number(used), Number(total))}`,
  },
  ...(unit === '' ? [{ name: 'Refused', isNumber: true, cell: ({ denied }: Node) => count(denied) }] : []),
]

/** What a company's teams and members used; nothing for a subject that nobody is below. */
export function SubjectTree({ id }: { readonly id: string }) {
  const { range, zone, label } = useSpan()
  const unit = useLocation().params.get('unit') ?? ''
  const asked = { ...range, time_zone: zone, within: id, unit, by: 'subject,parent', step: 'total', numbers: 'text' }
  const path = pathOf('/v1/usage', { ...asked, limit: String(rowsMax) })
  const answer = useAnswer<Usage>(path)
  if (answer.data === undefined || answer.data.rows.every(({ subject }) => subject === id)) return ''
  return html`<${Panel} title=${`Teams and members, ${label}`} asked=${answer} path=${path} rows=${6}>
    ${(data: Usage) => {
      const nodes = nodesOf(data.rows, id, unit)
      return html`<${Table} caption="Teams and members" columns=${columnsFor(unit, nodes[0]?.used ?? 0n, currencyOf(data))} rows=${nodes} keyOf=${(_: Node, at: number) => String(at)} />
        ${data.next !== null && html`<p class="quiet">Only ${count(rowsMax)} rows are shown.</p>`}`
    }}
  <//>`
}
