import type { Entity } from '@weir/api/policy.ts'
import { useState } from 'preact/hooks'
import { askSettings, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, useLocation } from '../location.ts'
import { Action } from '../parts/dialog.ts'
import { Field } from '../parts/field.ts'
import { Filters } from '../parts/filters.ts'
import { KeyList } from '../parts/key-list.ts'
import { LimitsNow, RaiseLimit } from '../parts/limits-now.ts'
import { Copy } from '../parts/panel.ts'
import { RunningMonth } from '../parts/quote.ts'
import { AlertsOf } from '../parts/subject-lists.ts'
import { SubjectTree, useTree } from '../parts/subject-tree.ts'
import { SubjectUse } from '../parts/subject-use.ts'
import { Parts } from '../parts/tabs.ts'
import { nameOf, Part, Subject, Time } from '../parts/words.ts'
import { may } from '../session.ts'
import { AnswersPanels } from './answers-of-upstreams.ts'
import { DecisionList, decisionFilters } from './decisions.ts'

const tabs = {
  use: 'Usage',
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
    about: html`Anyone with this link can view ${id}’s usage until <${Time} at=${end} />. Revoke it under Keys. You’ll see it only once:`,
    secret: `${location.origin}/me#${token}`,
  })
  const about = html`<p>Links to a read-only page of ${id}: usage, limits, decisions, alerts and spend.</p>
    <${Field} label="Expires after" options=${lengths} value=${length} onValue=${setLength} />`
  return html`<${Action} label="Portal link" scope="keys" about=${about} run=${() => send('POST', path, { expires_in: length })} said=${said} />`
}

function EndPortalLinks({ id }: { readonly id: string }) {
  const end = () => send('DELETE', `/v1/subjects/${encodeURIComponent(id)}/portal`)
  const about = html`<p>Revokes every portal link of ${id} and signs its readers out.</p>`
  return html`<${Action} label="Revoke portal links" isDanger scope="keys" about=${about} run=${end} said=${() => html`<p>Portal links revoked.</p>`} />`
}

const about = (id: string, entity: Entity['body'] | undefined, isUnknown: boolean) => {
  if (isUnknown) return html`<span class="word degraded">not in the policy</span>`
  if (entity === undefined) return ''
  const own = Object.keys(Object(entity.limits))
  const more = [
    ...(entity.timeZone === undefined ? [] : [`time zone ${String(entity.timeZone)}`]),
    ...(own.length === 0 ? [] : [`custom ${own.join(', ')}`]),
  ]
  const plan = typeof entity.plan === 'string' && html`plan <${Part} kind="plans" name=${entity.plan} />`
  const off =
    entity.suspended !== undefined && html` · <span class="word refused">✕ suspended: ${entity.suspended}</span>`
  const below = typeof entity.parent === 'string' && html` · below <${Subject} id=${entity.parent} />`
  return html`${plan}${off}${below}${more.map((one) => ` · ${one}`)} · <a href=${hrefOf('/policy', { kind: 'subjects', name: id })}>settings</a>`
}

/** Refuses all requests of a subject, with a reason that they are told; or serves it again. */
function Suspend({
  id,
  suspended,
  again,
}: {
  readonly id: string
  readonly suspended: unknown
  readonly again: () => void
}) {
  const [reason, setReason] = useState('')
  const path = `/v1/subjects/${encodeURIComponent(id)}`
  const isOff = suspended !== undefined
  const run = async () => {
    const { body, etag } = await askSettings(path)
    const { suspended: _, ...rest } = body
    await send('PUT', path, isOff ? rest : { ...rest, suspended: reason }, { 'If-Match': etag })
  }
  const about = isOff
    ? html`<p>Resumes service for ${id}.</p>`
    : html`<p>Refuses all requests of ${id} with 403 until you resume it. Its callers see the reason.</p><${Field} label="Reason" required maxlength="200" value=${reason} onValue=${setReason} />`
  return html`<${Action} label=${isOff ? 'Resume' : 'Suspend'} scope="write" isDanger=${!isOff} about=${about} run=${run} again=${again} />`
}

function UseOfTree({ id }: { readonly id: string }) {
  const tree = useTree(id)
  return html`${tree.isAbove !== undefined && html`<${SubjectUse} id=${id} isAbove=${tree.isAbove} />`}<${SubjectTree} tree=${tree} />`
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
        ${entity.data !== undefined && html`<${Suspend} id=${id} suspended=${entity.data.suspended} again=${entity.again} />`}
      </div>
    </div>
    <${Parts} of=${tabs} label=${`Of ${id}`} param="tab" />
    ${tab === 'use' && html`${isKnown && html`<${LimitsNow} id=${id} />`}<${UseOfTree} id=${id} />`}
    ${tab === 'limits' && isKnown && html`<${LimitsNow} id=${id} />`}
    ${tab === 'keys' && html`<${KeyList} subject=${id} />`}
    ${tab === 'decisions' && html`<${Filters} names=${decisionFilters.filter((one) => one !== 'subject' && one !== 'plan')} /><${DecisionList} fixed=${{ subject: id }} />`}
    ${tab === 'answers' && html`<${AnswersPanels} fixed=${{ subject: id }} />`}
    ${tab === 'alerts' && html`<${AlertsOf} id=${id} />`}
    ${tab === 'spend' && html`<${RunningMonth} id=${id} />`}
  `
}
