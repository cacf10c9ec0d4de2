import { useState } from 'preact/hooks'
import type { Key, Page } from '../answers.ts'
import { pathOf, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { Action, typed } from '../parts/dialog.ts'
import { Copy, Panel } from '../parts/panel.ts'
import { type Column, Pages, Table } from '../parts/table.ts'
import { Subject, Time } from '../parts/words.ts'
import { setParams, usePlace } from '../place.ts'
import { may } from '../session.ts'

const ends = ({ expires }: { readonly expires?: string | null | undefined }) =>
  expires ? html`<${Time} at=${expires} />` : 'never'

/** The keys of all subjects. New ones are made on a subject's page. */
export function KeysPage() {
  const { params } = usePlace()
  const after = params.get('after')
  const path = pathOf('/v1/keys', { subject: params.get('subject') ?? '', limit: '50', after: after ?? '' })
  const asked = useAnswer<Page<Key>>(path)
  const rotate = (id: string) => async () => {
    const made = await send<{ id: string; key: string }>('POST', `/v1/keys/${encodeURIComponent(id)}/rotate`, {})
    asked.again()
    return html`<p>The key ${made.id} takes its place. It is shown this once:</p><pre>${made.key}</pre><${Copy} text=${made.key} label="Copy" />`
  }
  const revoke = (id: string) => async () => {
    await send('DELETE', `/v1/keys/${encodeURIComponent(id)}`)
    asked.again()
    return undefined
  }
  const columns: readonly Column<Key>[] = [
    { name: 'Key', cell: ({ id }) => id },
    { name: 'Subject', cell: ({ subject }) => html`<${Subject} id=${subject} />` },
    { name: 'Ends', cell: ends },
    {
      name: '',
      cell: ({ id }) => html`<div class="row">
        <${Action} label="Rotate" isDisabled=${!may('keys')} about=${`A new key takes the place of ${id}, which goes on for 24 hours.`} run=${rotate(id)} />
        <${Action} label="Revoke" isDanger isDisabled=${!may('keys')} about=${`The key ${id} ends at once: requests with it are refused.`} run=${revoke(id)} />
      </div>`,
    },
  ]
  return html`
    <div class="head"><h1>Keys</h1><input aria-label="Subject" placeholder="subject" value=${params.get('subject') ?? ''} onChange=${(event: Event) => setParams({ subject: typed(event).trim(), after: undefined })} /></div>
    <${Panel} title="Keys of subjects" asked=${asked} path=${path} rows=${8} empty=${({ items }: Page<Key>) => (items.length === 0 ? 'There is no key.' : undefined)}>
      ${({ items, next }: Page<Key>) => html`<div class="stack">
        <${Table} caption="Keys" columns=${columns} rows=${items} keyOf=${({ id }: Key) => id} />
        <${Pages} after=${after} next=${next} onPage=${(page: string | undefined) => setParams({ after: page })} />
      </div>`}
    <//>
  `
}

interface Token {
  readonly name: string
  readonly scopes: readonly string[]
  readonly subjects?: readonly string[]
  readonly expires?: string
  readonly origin: string
}

const scopes = ['read', 'usage', 'billing', 'check', 'write', 'keys', 'limits', 'admin']

/** Who may use this API, and for what. */
export function TokensPage() {
  const path = '/v1/tokens?limit=100'
  const asked = useAnswer<Page<Token>>(path)
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState<readonly string[]>(['read'])
  const make = async () => {
    const made = await send<{ token: string }>('POST', '/v1/tokens', { name, scopes: chosen })
    asked.again()
    return html`<p>The token ${name}. It is shown this once:</p><pre>${made.token}</pre><${Copy} text=${made.token} label="Copy" />`
  }
  const end = (one: string) => async () => {
    await send('DELETE', `/v1/tokens/${encodeURIComponent(one)}`)
    asked.again()
    return undefined
  }
  const columns: readonly Column<Token>[] = [
    { name: 'Token', cell: (token) => token.name },
    { name: 'Scopes', cell: (token) => token.scopes.join(', ') },
    { name: 'Of whom', cell: ({ subjects }) => subjects?.join(', ') ?? 'everybody' },
    { name: 'Ends', cell: ends },
    {
      name: '',
      cell: (token) =>
        html`<${Action} label="Revoke" isDanger isDisabled=${!may('admin')} about=${`The token ${token.name} opens nothing from then on; browsers that signed in with it are signed out.`} run=${end(token.name)} />`,
    },
  ]
  const toggle = (scope: string) => () =>
    setChosen(chosen.includes(scope) ? chosen.filter((one) => one !== scope) : [...chosen, scope])
  const about = html`<label class="field">Name<input required pattern="[A-Za-z0-9._-]{1,64}" value=${name} onInput=${(event: Event) => setName(typed(event))} /></label>
    <div class="row">${scopes.map((scope) => html`<label key=${scope}><input type="checkbox" checked=${chosen.includes(scope)} onChange=${toggle(scope)} />${scope}</label>`)}</div>`
  return html`
    <h1>Tokens</h1>
    <${Panel} title="Who may use this API" asked=${asked} path=${path} tools=${html`<${Action} label="New token" isDisabled=${!may('admin')} about=${about} run=${make} />`} empty=${({ items }: Page<Token>) => (items.length === 0 ? 'Only the token of the environment.' : undefined)}>
      ${({ items }: Page<Token>) => html`<${Table} caption="Tokens" columns=${columns} rows=${items} keyOf=${(token: Token) => token.name} />`}
    <//>
  `
}
