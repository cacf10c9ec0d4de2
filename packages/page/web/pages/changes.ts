import type { Change, ListedChange } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, useLocation } from '../location.ts'
import { describeChange, wordsOf } from '../parts/change-words.ts'
import { Copy, Panel } from '../parts/panel.ts'
import { Differences } from '../parts/settings.ts'
import { type Column, ListPanel } from '../parts/table.ts'
import { Tabs } from '../parts/tabs.ts'
import { Time } from '../parts/words.ts'
import { policyTabs } from './policy.ts'

const columns: readonly Column<ListedChange>[] = [
  {
    name: 'When',
    isPlain: true,
    cell: ({ id, at }) => html`<a href=${hrefOf(`/changes/${id}`)}><${Time} at=${at} /></a>`,
  },
  { name: 'By', isPlain: true, cell: ({ by }) => html`<b>${by}</b>` },
  { name: 'What', isPlain: true, cell: describeChange },
]

export function ChangesPage() {
  const path = pathOf('/v1/changes', { limit: '50', after: useLocation().params.get('after') ?? '' })
  return html`
    <h1>Changes</h1>
    <${Tabs} of=${policyTabs} label="Policy" />
    <${ListPanel} title="History" asked=${useAnswer<Page<ListedChange>>(path)} path=${path} rows=${14} none="No changes yet." caption="Changes" columns=${columns} keyOf=${({ id }: ListedChange) => id} />
  `
}

/** One change: before and after. */
export function ChangePage({ id }: { readonly id: string }) {
  const path = `/v1/changes/${encodeURIComponent(id)}`
  return html`
    <div class="head"><div><h1>Change</h1><code class="quiet">${id}</code></div><${Copy} text=${location.href} label="Copy link" /></div>
    <${Panel} title="Before and after" asked=${useAnswer<Change>(path)} path=${path} rows=${8}>
      ${(data: Change) => html`<div class="stack">
        <p><b>${data.by}</b>, <${Time} at=${data.at} isLong /></p>
        <${Differences} of=${data.entities} />
        ${data.entities.length === 0 && html`<p>${data.summary.map(wordsOf).join(', ')}${data.summary.some(({ kind }) => kind === 'silence') && html`. <a href=${hrefOf('/endpoints')}>Silences</a>`}</p>`}
      </div>`}
    <//>
  `
}
