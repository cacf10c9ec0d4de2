import type { Key } from '@weir/api/access.ts'
import type { Page } from '@weir/api/schema.ts'
import { useState } from 'preact/hooks'
import { pathOf, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, usePlace } from '../place.ts'
import { needs } from '../session.ts'
import { Action } from './dialog.ts'
import { Field } from './field.ts'
import { Panel } from './panel.ts'
import { type Column, PagedTable } from './table.ts'
import { Subject, Time } from './words.ts'

interface Made {
  readonly id: string
  readonly key: string
}

/** When a credential ends. */
export const Ends = ({ at }: { readonly at: string | null | undefined }) => {
  if (!at) return html`<span class="quiet">never</span>`
  return Date.parse(at) <= Date.now() ? html`<span class="word degraded">ended</span>` : html`<${Time} at=${at} />`
}

const overlaps = { '0s': 'at once', '1h': 'in an hour', '24h': 'in a day', '168h': 'in a week' }

function Rotate({ id, again }: { readonly id: string; readonly again: () => void }) {
  const [overlap, setOverlap] = useState('24h')
  const run = async () => {
    const made = await send<Made>('POST', `/v1/keys/${encodeURIComponent(id)}/rotate`, { overlap })
    again()
    return { about: `The key ${made.id} takes the place of ${id}. It is shown this once:`, secret: made.key }
  }
  const about = html`<p>A new key of the same subject is made, and shown once.</p>
    <${Field} label=${`${id} ends`} options=${overlaps} value=${overlap} onValue=${setOverlap} />`
  return html`<${Action} label="Rotate" ...${needs('keys')} about=${about} run=${run} />`
}

function Revoke({ id, again }: { readonly id: string; readonly again: () => void }) {
  const run = async () => {
    await send('DELETE', `/v1/keys/${encodeURIComponent(id)}`)
    again()
    return undefined
  }
  const about = html`<p>Requests with the key are refused within a second, everywhere. It cannot be taken back.</p>`
  return html`<${Action} label="Revoke" isDanger ...${needs('keys')} about=${about} run=${run} confirm=${id} />`
}

function NewKey({ subject, again }: { readonly subject: string; readonly again: () => void }) {
  const [id, setId] = useState('')
  const [last, setLast] = useState('')
  const run = async () => {
    const body = { ...(id === '' ? {} : { id }), ...(last === '' ? {} : { expires: `${last}T23:59:59Z` }) }
    const made = await send<Made>('POST', `/v1/subjects/${encodeURIComponent(subject)}/keys`, body)
    again()
    return { about: `The key ${made.id} of ${subject}. It is shown this once:`, secret: made.key }
  }
  const about = html`<p>A new key of ${subject} is made. It is shown once, and stored as its hash.</p>
    <${Field} label="Name (optional)" pattern="[A-Za-z0-9._\\-]{1,64}" value=${id} onValue=${setId} />
    <${Field} label="Expires (UTC, optional)" type="date" value=${last} onValue=${setLast} />`
  return html`<${Action} label="New key" ...${needs('keys')} about=${about} run=${run} />`
}

/** Keys, of one subject or of all. */
export function KeyList({ subject = '' }: { readonly subject?: string }) {
  const after = usePlace().params.get('after') ?? ''
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
    {
      name: '',
      isPlain: true,
      cell: ({ id }) =>
        html`<div class="row end"><${Rotate} id=${id} again=${again} /><${Revoke} id=${id} again=${again} /></div>`,
    },
  ]
  const tools = subject !== '' && html`<${NewKey} subject=${subject} again=${again} />`
  const empty = ({ items }: Page<Key>) => (items.length === 0 ? 'There is no key.' : undefined)
  return html`<${Panel} title=${subject === '' ? 'Keys of subjects' : 'Keys'} asked=${asked} path=${path} rows=${8} tools=${tools} empty=${empty}>
    ${({ items, next }: Page<Key>) => html`<${PagedTable} caption="Keys" columns=${columns} rows=${items} next=${next} keyOf=${({ id }: Key) => id} />`}
  <//>`
}
