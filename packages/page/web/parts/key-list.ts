import type { Key, MadeKey } from '@weir/api/access.ts'
import type { Page } from '@weir/api/schema.ts'
import { useState } from 'preact/hooks'
import { pathOf, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, useLocation } from '../location.ts'
import { Action } from './dialog.ts'
import { Field } from './field.ts'
import { actionsOf, type Column, ListPanel } from './table.ts'
import { Subject, Time } from './words.ts'

/** When a credential ends. */
export const Ends = ({ at }: { readonly at: string | null | undefined }) => {
  if (!at) return html`<span class="quiet">never</span>`
  return Date.parse(at) <= Date.now() ? html`<span class="word degraded">ended</span>` : html`<${Time} at=${at} />`
}

/** The last second of a chosen day, as the API takes it; undefined for none. */
export const endOfDay = (date: string) => (date === '' ? undefined : `${date}T23:59:59Z`)

const overlaps = { '0s': 'at once', '1h': 'in an hour', '24h': 'in a day', '168h': 'in a week' }

function Rotate({ id, again }: { readonly id: string; readonly again: () => void }) {
  const [overlap, setOverlap] = useState('24h')
  const run = () => send('POST', `/v1/keys/${encodeURIComponent(id)}/rotate`, { overlap })
  const said = (made: MadeKey) => ({
    about: `The key ${made.id} takes the place of ${id}. It is shown this once:`,
    secret: made.key,
  })
  const about = html`<p>A new key of the same subject is made, and shown once.</p>
    <${Field} label=${`${id} ends`} options=${overlaps} value=${overlap} onValue=${setOverlap} />`
  return html`<${Action} label="Rotate" scope="keys" about=${about} run=${run} said=${said} again=${again} />`
}

function Revoke({ id, again }: { readonly id: string; readonly again: () => void }) {
  const run = () => send('DELETE', `/v1/keys/${encodeURIComponent(id)}`)
  const about = html`<p>Requests with the key are refused within a second, everywhere. It cannot be taken back.</p>`
  return html`<${Action} label="Revoke" isDanger scope="keys" about=${about} run=${run} again=${again} confirm=${id} />`
}

function NewKey({ subject, again }: { readonly subject: string; readonly again: () => void }) {
  const [id, setId] = useState('')
  const [last, setLast] = useState('')
  const body = { id: id || undefined, expires: endOfDay(last) }
  const run = () => send('POST', `/v1/subjects/${encodeURIComponent(subject)}/keys`, body)
  const said = (made: MadeKey) => ({
    about: `The key ${made.id} of ${subject}. It is shown this once:`,
    secret: made.key,
  })
  const about = html`<p>A new key of ${subject} is made. It is shown once, and stored as its hash.</p>
    <${Field} label="Name (optional)" pattern="[A-Za-z0-9._\\-]{1,64}" value=${id} onValue=${setId} />
    <${Field} label="Expires (UTC, optional)" type="date" value=${last} onValue=${setLast} />`
  return html`<${Action} label="New key" scope="keys" about=${about} run=${run} said=${said} again=${again} />`
}

/** Keys, of one subject or of all. */
export function KeyList({ subject = '' }: { readonly subject?: string }) {
  const after = useLocation().params.get('after') ?? ''
  const path = pathOf('/v1/keys', { subject, limit: '50', after })
  const asked = useAnswer<Page<Key>>(path)
  const { again } = asked
  const columns: readonly Column<Key>[] = [
    {
      name: 'Key',
      isPlain: true,
      cell: ({ id }) =>
        html`<a href=${hrefOf('/decisions', { key_id: id })} title="What was asked with it"><code>${id}</code></a>`,
    },
    ...(subject === ''
      ? [{ name: 'Subject', isPlain: true, cell: (key: Key) => html`<${Subject} id=${key.subject} />` }]
      : []),
    { name: 'Ends', cell: ({ expires }) => html`<${Ends} at=${expires} />` },
    actionsOf(({ id }) => html`<${Rotate} id=${id} again=${again} /><${Revoke} id=${id} again=${again} />`),
  ]
  const tools = subject !== '' && html`<${NewKey} subject=${subject} again=${again} />`
  return html`<${ListPanel} title=${subject === '' ? 'Keys of subjects' : 'Keys'} asked=${asked} path=${path} rows=${8} tools=${tools} none="There is no key." caption="Keys" columns=${columns} keyOf=${({ id }: Key) => id} />`
}
