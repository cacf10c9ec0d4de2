import type { Change, ListedChange } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import { askSettings, pathOf, type Refusal, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, useLocation } from '../location.ts'
import { describeChange, wordsOf } from '../parts/change-words.ts'
import { Action } from '../parts/dialog.ts'
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

const pathOfPart = ({ kind, name }: Change['entities'][number]) =>
  `/v1/${kind === 'watch' ? 'watches' : `${kind}s`}/${encodeURIComponent(name)}`

/** Puts each part as it was before, the last one first. */
function Revert({ data, again }: { readonly data: Change; readonly again: () => void }) {
  const run = async () => {
    for (const part of data.entities.toReversed()) {
      const path = pathOfPart(part)
      const now = await askSettings(path).catch((error: Refusal) => {
        // It is deleted: there is no version to hold to.
        if (error.status !== 404) throw error
      })
      const ifSame = now === undefined ? {} : { 'If-Match': now.etag }
      await (part.before === null ? send('DELETE', path, undefined, ifSame) : send('PUT', path, part.before, ifSame))
    }
  }
  const names = data.entities.map(({ kind, name }) => `${kind} ${name}`).join(', ')
  const about = html`<p>Restores ${names} as before this change, overwriting later changes.</p>`
  const said = () => html`<p>Reverted within a second. <a href=${hrefOf('/changes')}>History</a></p>`
  return html`<${Action} label="Revert" scope="write" about=${about} run=${run} said=${said} again=${again} />`
}

/** One change: before and after. */
export function ChangePage({ id }: { readonly id: string }) {
  const path = `/v1/changes/${encodeURIComponent(id)}`
  const asked = useAnswer<Change>(path)
  // Lines without a part are keys, counts and the like, which nothing brings back.
  const isWhole = asked.data !== undefined && asked.data.entities.length === asked.data.total && asked.data.total > 0
  return html`
    <div class="head"><div><h1>Change</h1><code class="quiet">${id}</code></div><div class="row">${isWhole && html`<${Revert} data=${asked.data} again=${asked.again} />`}<${Copy} text=${location.href} label="Copy link" /></div></div>
    <${Panel} title="Before and after" asked=${asked} path=${path} rows=${8}>
      ${(data: Change) => html`<div class="stack">
        <p><b>${data.by}</b>, <${Time} at=${data.at} isLong /></p>
        <${Differences} of=${data.entities} />
        ${data.entities.length === 0 && html`<p>${data.summary.map(wordsOf).join(', ')}${data.summary.some(({ kind }) => kind === 'silence') && html`. <a href=${hrefOf('/endpoints')}>Silences</a>`}</p>`}
      </div>`}
    <//>
  `
}
