import type { Block } from '@weir/api/limits.ts'
import type { Page } from '@weir/api/schema.ts'
import { pathOf, send, useAnswer } from '../api.ts'
import { ago, count } from '../format.ts'
import { html } from '../html.ts'
import { hrefOf, setParams, useLocation } from '../location.ts'
import { Action } from '../parts/dialog.ts'
import { Field } from '../parts/field.ts'
import { columnNames, filtersOf } from '../parts/filters.ts'
import { Panel } from '../parts/panel.ts'
import { actionsOf, type Column, PagedTable } from '../parts/table.ts'
import { Part, Subject, Time } from '../parts/words.ts'

const whoOf = ({ subject, ip, scope }: Block) =>
  html`${ip} ${subject !== null && subject !== '' && html`<${Subject} id=${subject} />`} ${Object.entries(scope)
    .filter(([name]) => name !== 'ip' && name !== 'subject')
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')}`

const tools = ['ip', 'limit', 'subject'] as const

/** Active blocks, and a way to lift them. */
export function BlocksPage() {
  const { params } = useLocation()
  const path = pathOf('/v1/blocks', filtersOf(params, [...tools, 'after']))
  const asked = useAnswer<Page<Block> & { complete: boolean }>(path, 5_000)
  const set = (name: string) => (value: string) => setParams({ [name]: value, after: undefined })
  const lift =
    ({ id }: Block, forget: boolean) =>
    () =>
      send('POST', `/v1/blocks/${encodeURIComponent(id)}/lift`, { forget })
  const columns: readonly Column<Block>[] = [
    { name: 'Who', isPlain: true, cell: whoOf },
    { name: 'Limit', isPlain: true, cell: ({ limit }) => html`<b><${Part} kind="limits" name=${limit} /></b>` },
    {
      name: 'Since',
      cell: ({ since, decision }) =>
        html`<a href=${hrefOf(`/decisions/${decision}`)} title="The refusal that set the block"><${Time} at=${since} /></a>`,
    },
    { name: 'Free', cell: ({ until }) => html`<span title=${until}>${ago(Date.parse(until))}</span>` },
    { name: 'Refused', isNumber: true, cell: ({ refusals }) => count(refusals) },
    actionsOf(
      (block) => html`
        <${Action} label="Lift" scope="limits" again=${asked.again} about="The block ends. What was counted stays: a count that is full blocks again at the next request." run=${lift(block, false)} />
        <${Action} label="Lift and forget" scope="limits" again=${asked.again} about="The block ends, and what was counted is forgotten." run=${lift(block, true)} />
      `,
    ),
  ]
  return html`
    <div class="head"><h1>Blocks</h1><a class="button" href="/v1/blocks?format=text" download="blocked.txt">List for firewalls</a></div>
    <div class="row">${tools.map((name) => html`<${Field} key=${name} isTool label=${columnNames[name]} on="change" suggest=${name === 'subject' ? name : undefined} value=${params.get(name) ?? ''} onValue=${set(name)} />`)}</div>
    <${Panel} title="Active blocks" asked=${asked} path=${path} rows=${8} empty=${({ items }: Page<Block>) => (items.length === 0 ? 'No active blocks.' : undefined)}>
      ${({ items, next, complete }: Page<Block> & { complete: boolean }) => html`<div class="stack">
        ${!complete && html`<p class="note">There may be more: not every server of Redis could be asked in time.</p>`}
        <${PagedTable} caption="Blocks" columns=${columns} rows=${items} next=${next} keyOf=${({ id }: Block) => id} />
      </div>`}
    <//>
  `
}
