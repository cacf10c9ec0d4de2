import type { Block, Page } from '../answers.ts'
import { pathOf, send, useAnswer } from '../api.ts'
import { ago, count } from '../format.ts'
import { html } from '../html.ts'
import { Action, typed } from '../parts/dialog.ts'
import { Panel } from '../parts/panel.ts'
import { type Column, Pages, Table } from '../parts/table.ts'
import { Subject, Time } from '../parts/words.ts'
import { hrefOf, setParams, usePlace } from '../place.ts'
import { may } from '../session.ts'

const whoOf = ({ subject, ip, scope }: Block) =>
  html`${ip} ${subject !== null && subject !== '' && html`<${Subject} id=${subject} />`} ${Object.entries(scope)
    .filter(([name]) => name !== 'ip' && name !== 'subject')
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')}`

/** Who is shut out now, and a way to let them in. */
export function BlocksPage() {
  const { params } = usePlace()
  const after = params.get('after')
  const path = pathOf('/v1/blocks', {
    limit: params.get('limit') ?? '',
    ip: params.get('ip') ?? '',
    subject: params.get('subject') ?? '',
    after: after ?? '',
  })
  const asked = useAnswer<Page<Block> & { complete: boolean }>(path, 5_000)
  const change = (name: string) => (event: Event) => setParams({ [name]: typed(event).trim(), after: undefined })
  const lift = (block: Block, forget: boolean) => async () => {
    await send('POST', `/v1/blocks/${encodeURIComponent(block.id)}/lift`, { forget })
    asked.again()
    return undefined
  }
  const columns: readonly Column<Block>[] = [
    { name: 'Who', cell: whoOf },
    { name: 'Limit', cell: ({ limit }) => limit },
    { name: 'Since', cell: ({ since }) => html`<${Time} at=${since} />` },
    { name: 'Free', cell: ({ until }) => html`<span title=${until}>${ago(Date.parse(until))}</span>` },
    { name: 'Refused', isNumber: true, cell: ({ refusals }) => count(refusals) },
    { name: 'Why', cell: ({ decision }) => html`<a href=${hrefOf(`/decisions/${decision}`)}>the refusal</a>` },
    {
      name: '',
      cell: (block) => html`<div class="row">
        <${Action} label="Lift" isDisabled=${!may('limits')} about="The block ends. What was counted stays: a count that is full blocks again at the next request." run=${lift(block, false)} />
        <${Action} label="Lift and forget" isDisabled=${!may('limits')} about="The block ends, and what was counted is forgotten." run=${lift(block, true)} />
      </div>`,
    },
  ]
  return html`
    <div class="head">
      <h1>Blocks</h1>
      <div class="row">
        <input aria-label="Address" placeholder="address" value=${params.get('ip') ?? ''} onChange=${change('ip')} />
        <input aria-label="Limit" placeholder="limit" value=${params.get('limit') ?? ''} onChange=${change('limit')} />
        <a class="button" href="/v1/blocks?format=text" download="blocked.txt">List for firewalls</a>
      </div>
    </div>
    <${Panel} title="Who is shut out" asked=${asked} path=${path} rows=${8} empty=${({ items }: Page<Block>) => (items.length === 0 ? 'Nobody is shut out.' : undefined)}>
      ${({ items, next, complete }: Page<Block> & { complete: boolean }) => html`<div class="stack">
        ${!complete && html`<p class="note">There may be more: not every server of Redis could be asked in time.</p>`}
        <${Table} caption="Blocks" columns=${columns} rows=${items} keyOf=${({ id }: Block) => id} />
        <${Pages} after=${after} next=${next} onPage=${(page: string | undefined) => setParams({ after: page })} />
      </div>`}
    <//>
  `
}
