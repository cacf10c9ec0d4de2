import type { Usage } from '@weir/api/usage.ts'
import { count, percent, quantity } from '@weir/core/format.ts'
import { useRef } from 'preact/hooks'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { useLocation } from '../location.ts'
import { Panel } from './panel.ts'
import { useSpan } from './span.ts'
import { type Column, Table } from './table.ts'
import { nodesOf, type TreeNode } from './tree-nodes.ts'
import { currencyOf } from './usage-columns.ts'
import { Meter, Subject } from './words.ts'

/** Rows of one answer, as many as there may be. */
const rowsMax = 10_000

const columnsFor = (unit: string, total: bigint, currency: string | undefined): readonly Column<TreeNode>[] => [
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
      html`<${Meter} used=${Number(used)} size=${Number(total)} isPast /> ${percent(Number(used), Number(total))}`,
  },
  ...(unit === '' ? [{ name: 'Refused', isNumber: true, cell: ({ denied }: TreeNode) => count(denied) }] : []),
]

/** Asks what everybody in a tree used; `isAbove` is undefined until it is known. */
export function useTree(id: string) {
  const { range, zone } = useSpan()
  const unit = useLocation().params.get('unit') ?? ''
  const asked = { ...range, time_zone: zone, within: id, unit, by: 'subject,parents', step: 'total', numbers: 'text' }
  const path = pathOf('/v1/usage', { ...asked, limit: String(rowsMax) })
  const answer = useAnswer<Usage>(path)
  // Another span or unit asks again: meanwhile it is what it was.
  const last = useRef<{ readonly id: string; readonly isAbove: boolean } | undefined>(undefined)
  if (answer.data !== undefined) last.current = { id, isAbove: answer.data.rows.some(({ subject }) => subject !== id) }
  const isAbove = last.current?.id === id ? last.current.isAbove : undefined
  return { id, unit, path, answer, isAbove }
}

/** What a company's teams and members used, or why that is unknown; nothing for a subject that nobody is below. */
export function SubjectTree({ tree }: { readonly tree: ReturnType<typeof useTree> }) {
  const { label } = useSpan()
  const { id, unit, path, answer, isAbove } = tree
  if (isAbove !== true && answer.error === undefined) return ''
  return html`<${Panel} title=${`Teams and members, ${label}`} asked=${answer} path=${path} rows=${6}>
    ${(data: Usage) => {
      const nodes = nodesOf(data.rows, id, unit)
      return html`<${Table} caption="Teams and members" columns=${columnsFor(unit, nodes[0]?.used ?? 0n, currencyOf(data))} rows=${nodes} keyOf=${(_: TreeNode, at: number) => String(at)} />
        ${data.next !== null && html`<p class="quiet">Sums of the first ${count(rowsMax)} rows.</p>`}`
    }}
  <//>`
}
