import type { ListedToken } from '@weir/api/access.ts'
import type { Page } from '@weir/api/schema.ts'
import { useState } from 'preact/hooks'
import { pathOf, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { useLocation } from '../location.ts'
import { Action } from '../parts/dialog.ts'
import { Field } from '../parts/field.ts'
import { Ends, endOfDay } from '../parts/key-list.ts'
import { actionsOf, type Column, ListPanel } from '../parts/table.ts'
import { Tabs } from '../parts/tabs.ts'
import { credentialTabs } from './keys.ts'

const scopes: Readonly<Record<string, string>> = {
  read: 'read the policy, alerts, blocks and changes',
  usage: 'read usage and decisions of all subjects',
  billing: 'read prices and spend',
  check: 'make decisions for any subject at the ingress',
  write: 'change the policy',
  keys: 'create and revoke keys and portal links',
  limits: 'reset limits, lift blocks',
  admin: 'everything, including tokens',
}

function NewToken({ again }: { readonly again: () => void }) {
  const [name, setName] = useState('')
  const [subjects, setSubjects] = useState('')
  const [last, setLast] = useState('')
  const [chosen, setChosen] = useState<readonly string[]>(['read'])
  const toggle = (scope: string) => () =>
    setChosen(chosen.includes(scope) ? chosen.filter((one) => one !== scope) : [...chosen, scope])
  const only = subjects.split(/[\s,]+/).filter((one) => one !== '')
  const body = { name, scopes: chosen, subjects: only.length === 0 ? undefined : only, expires: endOfDay(last) }
  const said = ({ token }: { readonly token: string }) => ({
    about: `Token ${name}. Copy it now: you won’t see it again.`,
    secret: token,
  })
  const about = html`
    <${Field} label="Name" required pattern="[A-Za-z0-9._\\-]{1,64}" value=${name} onValue=${setName} />
    <fieldset><legend>Scopes</legend>
      ${Object.entries(scopes).map(([scope, what]) => html`<label key=${scope}><input type="checkbox" checked=${chosen.includes(scope)} onChange=${toggle(scope)} /><b>${scope}</b><span class="quiet small">${what}</span></label>`)}
    </fieldset>
    <${Field} label="Limit to subjects (scopes usage and billing)" placeholder="all subjects" value=${subjects} onValue=${setSubjects} />
    <${Field} label="Expires (UTC, optional)" type="date" value=${last} onValue=${setLast} />`
  return html`<${Action} label="New token" scope="admin" about=${about} run=${() => send('POST', '/v1/tokens', body)} said=${said} again=${again} />`
}

function Revoke({ name, again }: { readonly name: string; readonly again: () => void }) {
  const run = () => send('DELETE', `/v1/tokens/${encodeURIComponent(name)}`)
  const about = html`<p>Rejects requests with this token and signs out browsers that use it.</p>`
  return html`<${Action} label="Revoke" isDanger scope="admin" about=${about} run=${run} again=${again} confirm=${name} />`
}

/** Tokens, and for what. */
export function TokensPage() {
  const path = pathOf('/v1/tokens', { limit: '50', after: useLocation().params.get('after') ?? '' })
  const asked = useAnswer<Page<ListedToken>>(path)
  const { again } = asked
  const columns: readonly Column<ListedToken>[] = [
    { name: 'Token', isPlain: true, cell: ({ name }) => html`<b>${name}</b>` },
    { name: 'Scopes', cell: (token) => token.scopes.join(', ') },
    {
      name: 'Subjects',
      isMinor: true,
      cell: ({ subjects }) => subjects?.join(', ') ?? html`<span class="quiet">all subjects</span>`,
    },
    { name: 'Expires', cell: ({ expires }) => html`<${Ends} at=${expires} />` },
    actionsOf(({ name }) => html`<${Revoke} name=${name} again=${again} />`),
  ]
  return html`
    <div class="head"><h1>Tokens</h1><${NewToken} again=${again} /></div>
    <${Tabs} of=${credentialTabs} label="Credentials" />
    <${ListPanel} title="Tokens" asked=${asked} path=${path} rows=${6} none="No tokens yet, only the admin token from the environment." caption="Tokens" columns=${columns} keyOf=${({ name }: ListedToken) => name} />
  `
}
