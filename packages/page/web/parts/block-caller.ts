import { useState } from 'preact/hooks'
import { send } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { Action } from './dialog.ts'
import { Field } from './field.ts'
import { Time } from './words.ts'

const kinds = { ip: 'address or network', subject: 'subject', key_id: 'key', exempt: 'exempt address or network' }
/** What a caller is blocked by. */
export type BlockedBy = 'ip' | 'subject' | 'key_id'
const lengths = { '1h': 'an hour', '24h': 'a day', '168h': 'a week', '720h': '30 days', '8760h': 'a year' }

export interface BlockCallerProps {
  /** The caller, where a row is of one. */
  readonly by?: BlockedBy
  readonly value?: string
  readonly label?: string
  readonly again?: () => void
}

/** Blocks a caller for a while, or exempts an address. */
export function BlockCaller({ by = 'ip', value = '', label = 'Block', again }: BlockCallerProps) {
  const [kind, setKind] = useState<string>(by)
  const [who, setWho] = useState(value)
  const [length, setLength] = useState('1h')
  const [reason, setReason] = useState('')
  const isExempt = kind === 'exempt'
  const caller = isExempt ? { ip: who.trim(), exempt: true } : { [kind]: who.trim() }
  const body = { ...caller, for: length, ...(reason === '' ? {} : { reason }) }
  const said = ({ until }: { readonly until: string }) =>
    html`<p>${who} is ${isExempt ? 'exempt' : 'blocked'} until <${Time} at=${until} />. Undo under <a href=${hrefOf('/blocks')}>Blocks</a>.</p>`
  const about = html`
    ${value === '' && html`<${Field} label="What" options=${kinds} value=${kind} onValue=${setKind} />`}
    <${Field} label="Who" required value=${who} onValue=${setWho} suggest=${kind === 'subject' ? 'subject' : undefined} readonly=${value !== ''} />
    <${Field} label="For" options=${lengths} value=${length} onValue=${setLength} />
    <${Field} label="Reason (optional)" maxlength="200" value=${reason} onValue=${setReason} />
    <p class="quiet">${isExempt ? 'Exempts the address from blocks and limits by address.' : 'Requests are refused with 403 within a second.'}</p>`
  return html`<${Action} label=${label} scope="limits" about=${about} run=${() => send('POST', '/v1/blocks', body)} said=${said} again=${again} />`
}
