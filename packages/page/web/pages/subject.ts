import type { Entity } from '@weir/api/policy.ts'
import { useState } from 'preact/hooks'
import { send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, useLocation } from '../location.ts'
import { Action } from '../parts/dialog.ts'
import { Field } from '../parts/field.ts'
import { KeyList } from '../parts/key-list.ts'
import { LimitsNow, RaiseLimit } from '../parts/limits-now.ts'
import { Copy } from '../parts/panel.ts'
import { RunningMonth } from '../parts/quote.ts'
import { AlertsOf } from '../parts/subject-lists.ts'
import { SubjectUse } from '../parts/subject-use.ts'
import { Parts } from '../parts/tabs.ts'
import { nameOf, Part, Time } from '../parts/words.ts'
import { may } from '../session.ts'
import { AnswersPanels } from './answers-of-upstreams.ts'
import { DecisionList } from './decisions.ts'

const tabs = {
  use: 'Use',
  limits: 'Limits',
  keys: 'Keys',
  decisions: 'Decisions',
  answers: 'Answers',
  alerts: 'Alerts',
  spend: 'Spend',
}

const lengths = { '15m': '15 minutes', '1h': 'an hour', '24h': 'a day', '168h': 'a week' }

/** Makes a link that shows a customer its own page, and nothing else. */
function PortalLink({ id }: { readonly id: string }) {
  const [length, setLength] = useState('1h')
  const path = `/v1/subjects/${encodeURIComponent(id)}/portal`
  const said = ({ token, expires_at: end }: { readonly token: string; readonly expires_at: string }) => ({
    about: html`Everybody who has this link sees the usage of ${id} until <${Time} at=${end} />. Its tab Keys ends links earlier. It is shown this once:`,
    secret: `${location.origin}/me#${token}`,
  })
  const about = html`<p>A link to the page of ${id}: its use, limits, decisions, alerts and spend, to be read and not to be changed.</p>
    <${Field} label="It ends after" options=${lengths} value=${length} onValue=${setLength} />`
  return html`<${Action} label="Portal link" scope="keys" about=${about} run=${() => send('POST', path, { expires_in: length })} said=${said} />`
}

function EndPortalLinks({ id }: { readonly id: string }) {
  const end = () => send('DELETE', `/v1/subjects/${encodeURIComponent(id)}/portal`)
  const about = html`<p>Every link to the page of ${id} ends within a second, and its readers are signed out.</p>`
  return html`<${Action} label="End portal links" isDanger scope="keys" about=${about} run=${end} said=${() => html`<p>All of them have ended.</p>`} />`
}

const about = (id: string, entity: Entity['body'] | undefined, isUnknown: boolean) => {
  if (isUnknown) return html`<span class="word degraded">not in the policy</span>`
  if (entity === undefined) return ''
  const own = Object.keys(Object(entity.limits))
  const more = [
    ...(entity.timeZone === undefined ? [] : [`days of ${String(entity.timeZone)}`]),
    ...(own.length === 0 ? [] : [`own settings of ${own.join(', ')}`]),
  ]
  const plan = typeof entity.plan === 'string' && html`plan <${Part} kind="plans" name=${entity.plan} />`
  return html`${plan}${more.map((one) => ` · ${one}`)} · <a href=${hrefOf('/policy', { kind: 'subjects', name: id })}>settings</a>`
}

/** One subject: its use, limits, keys, decisions, alerts and spend. */
export function SubjectPage({ id }: { readonly id: string }) {
  const given = useLocation().params.get('tab') ?? 'use'
  const tab = Object.hasOwn(tabs, given) ? given : 'use'
  const entity = useAnswer<Entity['body']>(may('read') ? `/v1/subjects/${encodeURIComponent(id)}` : undefined)
  const isUnknown = entity.error?.status === 404
  const isKnown = entity.data !== undefined || !may('read')
  return html`
    <div class="head">
      <div><h1>${nameOf(id)}</h1><span class="quiet">${about(id, entity.data, isUnknown)}</span></div>
      <div class="row">
        <${Copy} text=${id} label="Copy id" />
        ${isKnown && html`<${PortalLink} id=${id} />${tab === 'keys' && html`<${EndPortalLinks} id=${id} />`}<${RaiseLimit} id=${id} onDone=${entity.again} />`}
      </div>
    </div>
    <${Parts} of=${tabs} label=${`Of ${id}`} param="tab" />
    ${tab === 'use' && html`${isKnown && html`<${LimitsNow} id=${id} />`}<${SubjectUse} id=${id} />`}
    ${tab === 'limits' && isKnown && html`<${LimitsNow} id=${id} />`}
    ${tab === 'keys' && html`<${KeyList} subject=${id} />`}
    ${tab === 'decisions' && html`<${DecisionList} fixed=${{ subject: id }} />`}
    ${tab === 'answers' && html`<${AnswersPanels} fixed=${{ subject: id }} />`}
    ${tab === 'alerts' && html`<${AlertsOf} id=${id} />`}
    ${tab === 'spend' && html`<${RunningMonth} id=${id} />`}
  `
}
