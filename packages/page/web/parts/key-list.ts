import type { Key, MadeKey } from '@weir/api/access.ts'
import type { Page } from '@weir/api/schema.ts'
import type { Usage } from '@weir/api/usage.ts'
import { count } from '@weir/core/format.ts'
import { useState } from 'preact/hooks'
import { pathOf, send, useAnswer } from '../api.ts'
import { stepLabel } from '../format.ts'
import { html } from '../html.ts'
import { hrefOf, useLocation, zoneNow } from '../location.ts'
import { Action } from './dialog.ts'
import { Field } from './field.ts'
import { actionsOf, type Column, ListPanel } from './table.ts'
import { Subject, Time } from './words.ts'

/** When a credential ends. */
export const Ends = ({ at }: { readonly at: string | null | undefined }) => {
  if (!at) return html`<span class="quiet">never</span>`
  return Date.parse(at) <= Date.now() ? html`<span class="word degraded">expired</span>` : html`<${Time} at=${at} />`
}

/** The last second of a chosen day, as the API takes it; undefined for none. */
export const endOfDay = (date: string) => (date === '' ? undefined : `${date}T23:59:59Z`)

const overlaps = { '0s': 'immediately', '1h': 'in an hour', '24h': 'in a day', '168h': 'in a week' }

function Rotate({ id, again }: { readonly id: string; readonly again: () => void }) {
  const [overlap, setOverlap] = useState('24h')
  const run = () => send('POST', `/v1/keys/${encodeURIComponent(id)}/rotate`, { overlap })
  const said = (made: MadeKey) => ({
    about: `Key ${made.id} replaces ${id}. Copy it now: you won’t see it again.`,
    secret: made.key,
  })
  const about = html`<p>Creates another key for the same subject. You’ll see it only once.</p>
    <${Field} label=${`${id} expires`} options=${overlaps} value=${overlap} onValue=${setOverlap} />`
  return html`<${Action} label="Rotate" scope="keys" about=${about} run=${run} said=${said} again=${again} />`
}

function Revoke({ id, again }: { readonly id: string; readonly again: () => void }) {
  const run = () => send('DELETE', `/v1/keys/${encodeURIComponent(id)}`)
  const about = html`<p>Requests with this key will be refused within a second. This cannot be undone.</p>`
  return html`<${Action} label="Revoke" isDanger scope="keys" about=${about} run=${run} again=${again} confirm=${id} />`
}

interface NewKeyProps {
  readonly subject: string
  readonly again?: () => void
  readonly onMade?: (key: string) => void
}

export function NewKey({ subject, again, onMade }: NewKeyProps) {
  const [id, setId] = useState('')
  const [last, setLast] = useState('')
  const body = { id: id || undefined, expires: endOfDay(last) }
  const run = () => send('POST', `/v1/subjects/${encodeURIComponent(subject)}/keys`, body)
  const said = (made: MadeKey) => {
    onMade?.(made.key)
    return { about: `Key ${made.id} of ${subject}. Copy it now: you won’t see it again.`, secret: made.key }
  }
  const about = html`<p>Creates an API key for ${subject}. You’ll see it only once; Weir stores a hash.</p>
    <${Field} label="Name (optional)" pattern="[A-Za-z0-9._\\-]{1,64}" value=${id} onValue=${setId} />
    <${Field} label="Expires (UTC, optional)" type="date" value=${last} onValue=${setLast} />`
  return html`<${Action} label="New key" scope="keys" about=${about} run=${run} said=${said} again=${again} />`
}

/** How much keys were used, and on which day last. */
function useKeyUse(ids: readonly string[]) {
  const question = { from: 'now-30d', time_zone: zoneNow(), by: 'key_id', step: 'day', limit: '10000', key_id: ids }
  const { data } = useAnswer<Usage>(ids.length === 0 ? undefined : pathOf('/v1/usage', question))
  return data && Map.groupBy(data.rows, ({ key_id: id = '' }) => id)
}

/** Keys, of one subject or of all. */
export function KeyList({ subject = '' }: { readonly subject?: string }) {
  const after = useLocation().params.get('after') ?? ''
  const path = pathOf('/v1/keys', { subject, limit: '50', after })
  const asked = useAnswer<Page<Key>>(path)
  const { again } = asked
  const use = useKeyUse(asked.data?.items.map(({ id }) => id) ?? [])
  const columns: readonly Column<Key>[] = [
    {
      name: 'Key',
      isPlain: true,
      cell: ({ id }) =>
        html`<a href=${hrefOf('/decisions', { key_id: id })} title="Its decisions"><code>${id}</code></a>`,
    },
    {
      name: 'Prefix',
      cell: ({ prefix }) =>
        prefix === null ? html`<span class="quiet">–</span>` : html`<span><code>${prefix}…</code></span>`,
    },
    ...(subject === ''
      ? [{ name: 'Subject', isPlain: true, cell: (key: Key) => html`<${Subject} id=${key.subject} />` }]
      : []),
    {
      name: 'Requests, 30 days',
      isNumber: true,
      cell: ({ id }) => count(use && (use.get(id) ?? []).reduce((sum, one) => sum + Number(one.count), 0)),
    },
    {
      name: 'Last used',
      cell: ({ id }) =>
        use?.has(id) === true
          ? stepLabel(use.get(id)?.at(-1)?.ts ?? '', 'day', zoneNow())
          : html`<span class="quiet">–</span>`,
    },
    {
      name: 'Created',
      cell: ({ created }) => (created === null ? html`<span class="quiet">–</span>` : html`<${Time} at=${created} />`),
    },
    { name: 'Expires', cell: ({ expires }) => html`<${Ends} at=${expires} />` },
    actionsOf(({ id }) => html`<${Rotate} id=${id} again=${again} /><${Revoke} id=${id} again=${again} />`),
  ]
  const tools = subject !== '' && html`<${NewKey} subject=${subject} again=${again} />`
  return html`<${ListPanel} title=${subject === '' ? 'Subject keys' : 'Keys'} asked=${asked} path=${path} rows=${8} tools=${tools} none="No keys yet." caption="Keys" columns=${columns} keyOf=${({ id }: Key) => id} />`
}
