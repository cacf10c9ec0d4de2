import type { Block } from '@weir/api/limits.ts'
import type { Page } from '@weir/api/schema.ts'
import { count } from '@weir/core/format.ts'
import { pathOf, send, useAnswer } from '../api.ts'
import { ago } from '../format.ts'
import { html } from '../html.ts'
import { hrefOf, setParams, useLocation } from '../location.ts'
import { BlockCaller } from '../parts/block-caller.ts'
import { Action } from '../parts/dialog.ts'
import { Field } from '../parts/field.ts'
import { columnNames, filtersOf } from '../parts/filters.ts'
import { Panel } from '../parts/panel.ts'
import { actionsOf, type Column, PagedTable } from '../parts/table.ts'
import { Part, Subject, Time } from '../parts/words.ts'

const whoOf = ({ subject, ip, key_id: key, scope }: Block) =>
  html`${ip} ${key && html`key <code>${key}</code>`} ${subject !== null && subject !== '' && html`<${Subject} id=${subject} />`} ${Object.entries(
    scope,
  )
    .filter(([name]) => name !== 'ip' && name !== 'subject')
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')}`

const sourceOf = ({ limit, by, exempt, reason }: Block) =>
  limit === null
    ? html`${exempt === true ? html`<span class="word good">✓ exempt</span>` : html`<span class="word refused">✕ blocked</span>`} by ${by}${reason && html`: <span class="quiet">${reason}</span>`}`
    : html`<b><${Part} kind="limits" name=${limit} /></b>`

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
    { name: 'Source', isPlain: true, cell: sourceOf },
    {
      name: 'Since',
      cell: ({ since, decision }) =>
        decision === null
          ? html`<${Time} at=${since} />`
          : html`<a href=${hrefOf(`/decisions/${decision}`)} title="The refusal that set the block"><${Time} at=${since} /></a>`,
    },
    { name: 'Ends', cell: ({ until }) => html`<span title=${until}>${ago(Date.parse(until))}</span>` },
    { name: 'Refused', isNumber: true, cell: ({ refusals }) => count(refusals) },
    actionsOf(
      (block) => html`
        <${Action} label="Lift" scope="limits" again=${asked.again} about=${block.limit === null ? 'Ends the block within a second.' : 'Ends the block and keeps the count. A full count blocks again at the next request.'} run=${lift(block, false)} />
        ${block.limit !== null && html`<${Action} label="Lift and reset" scope="limits" again=${asked.again} about="Ends the block and resets the count." run=${lift(block, true)} />`}
      `,
    ),
  ]
  return html`
    <div class="head"><h1>Blocks</h1><div class="row"><${BlockCaller} again=${asked.again} /><a class="button" href="/v1/blocks?format=text" download="blocked.txt">List for firewalls</a></div></div>
    <div class="row">${tools.map((name) => html`<${Field} key=${name} isTool label=${columnNames[name]} on="change" suggest=${name === 'subject' ? name : undefined} value=${params.get(name) ?? ''} onValue=${set(name)} />`)}</div>
    <${Panel} title="Active blocks" asked=${asked} path=${path} rows=${8} empty=${({ items }: Page<Block>) => (items.length === 0 ? 'No active blocks.' : undefined)}>
      ${({ items, next, complete }: Page<Block> & { complete: boolean }) => html`<div class="stack">
        ${!complete && html`<p class="note">This list may be incomplete: some Redis servers did not respond in time.</p>`}
        <${PagedTable} caption="Blocks" columns=${columns} rows=${items} next=${next} keyOf=${({ id }: Block) => id} />
      </div>`}
    <//>
  `
}
