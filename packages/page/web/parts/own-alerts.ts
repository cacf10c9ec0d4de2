import type { OwnAlertsAnswer } from '@weir/api/access.ts'
import { useState } from 'preact/hooks'
import { send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { Action } from './dialog.ts'
import { Field } from './field.ts'
import { Panel } from './panel.ts'
import { actionsOf, type Column, Table } from './table.ts'

type Address = OwnAlertsAnswer['addresses'][number]

const states = {
  confirmed: ['good', '✓ confirmed'],
  pending: ['degraded', '… open the link in the mail'],
  unsubscribed: ['refused', '✕ unsubscribed'],
} as const

interface Props {
  readonly path: string
  readonly chosen: OwnAlertsAnswer
  readonly again: () => void
}

const emailsOf = ({ addresses }: OwnAlertsAnswer) => addresses.map(({ email }) => email)
const put = (path: string, addresses: readonly string[], percents: readonly number[]) =>
  send('PUT', path, { addresses, percents })

function AddAddress({ path, chosen, again }: Props) {
  const [email, setEmail] = useState('')
  const run = () => put(path, [...emailsOf(chosen), email], chosen.percents)
  const said = () =>
    html`<p>Open the link in the mail to ${email} within a day. Alerts follow once it is confirmed.</p>`
  const about = html`<${Field} label="Email" type="email" required value=${email} onValue=${setEmail} />`
  return html`<${Action} label="Add address" about=${about} run=${run} said=${said} again=${again} />`
}

function Percents({ path, chosen, again }: Props) {
  const [text, setText] = useState(chosen.percents.join(', '))
  const percents = text
    .split(/[\s,%]+/)
    .filter((one) => one !== '')
    .map(Number)
  const run = () => put(path, emailsOf(chosen), percents)
  const about = html`<p>Sends an alert when usage of a daily, weekly or monthly limit reaches one of the percentages below.</p>
    <${Field} label="Percentages" placeholder="50, 80" value=${text} onValue=${setText} />`
  return html`<${Action} label="Change thresholds" about=${about} run=${run} again=${again} />`
}

function Remove({ path, chosen, again, email }: Props & { readonly email: string }) {
  const run = () =>
    put(
      path,
      emailsOf(chosen).filter((one) => one !== email),
      chosen.percents,
    )
  return html`<${Action} label="Remove" about=${html`<p>Stops alerts to ${email}.</p>`} run=${run} again=${again} />`
}

/** Addresses and percentages that a customer chooses for its own alerts; nothing where its plan does not let it. */
export function OwnAlerts({ id }: { readonly id: string }) {
  const path = `/v1/subjects/${encodeURIComponent(id)}/own-alerts`
  const asked = useAnswer<OwnAlertsAnswer>(path, 15_000)
  const { data, again } = asked
  if (data === undefined || !data.allowed) return null
  const act = { path, chosen: data, again }
  const columns: readonly Column<Address>[] = [
    { name: 'Email', isPlain: true, cell: ({ email }) => email },
    {
      name: 'State',
      isPlain: true,
      cell: ({ state }) => html`<span class=${`word ${states[state][0]}`}>${states[state][1]}</span>`,
    },
    actionsOf(({ email }) => html`<${Remove} ...${act} email=${email} />`),
  ]
  const tools = html`<${Percents} ...${act} /><${AddAddress} ...${act} />`
  return html`<${Panel} title="Alert settings" asked=${asked} path=${path} rows=${2} tools=${tools}>
    ${({ addresses, percents }: OwnAlertsAnswer) => html`<div class="stack">
      ${addresses.length === 0 ? html`<p class="empty">Add an address to get alerts by mail.</p>` : html`<${Table} caption="Addresses" columns=${columns} rows=${addresses} keyOf=${({ email }: Address) => email} />`}
      <p class="quiet">${percents.length === 0 ? 'Alerts at the thresholds of your plan.' : `Alerts at ${percents.map((one) => `${one}%`).join(', ')}, and at the thresholds of your plan.`}</p>
    </div>`}
  <//>`
}
