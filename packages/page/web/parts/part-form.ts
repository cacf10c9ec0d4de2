import type { Entity } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import { algorithmsWith } from '@weir/core/limits/algorithm-facts.ts'
import { algorithms } from '@weir/core/limits/limit.ts'
import { useState } from 'preact/hooks'
import { Refusal, type Settings, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { Action } from './dialog.ts'
import { Field, typed } from './field.ts'

/** What a form or a button for one part of the policy is given. */
export interface PartProps {
  readonly path: string
  readonly kind: string
  readonly name: string
  readonly settings: Settings
  /** Once it is done. */
  readonly again: () => void
}

type Body = Settings['body']
interface FieldsProps {
  readonly body: Body
  /** `without`: members that go with it. */
  readonly set: (name: string, value: unknown, without?: readonly string[]) => void
}

const textOf = (value: unknown) => (value === undefined ? '' : String(value))
/** What requests in flight do not have. */
const ofSpans = ['window', 'period', 'burst']
const periods = { '': 'window', minute: 'minute', hour: 'hour', day: 'day', week: 'week', month: 'month' }
const named = (names: readonly string[]) => Object.fromEntries(names.map((one) => [one, one.replace('_', ' ')]))

function LimitFields({ body, set }: FieldsProps) {
  const text = (name: string) => (value: string) => set(name, value === '' ? undefined : value)
  const period = textOf(body.period)
  const inFlight = algorithmsWith('countsInFlight').map(String)
  const isOfSlots = inFlight.includes(textOf(body.algorithm))
  const setAlgorithm = (value: string) => set('algorithm', value, inFlight.includes(value) ? ofSpans : ['expires'])
  return html`
    <div class="row">
      <${Field} label="Algorithm" options=${named(algorithms)} value=${textOf(body.algorithm)} onValue=${setAlgorithm} />
      <${Field} label="Size" type="number" min="0" step="1" required value=${textOf(body.size)} onValue=${(value: string) => set('size', Number(value))} />
    </div>
    <div class="row">
      ${!isOfSlots && html`<${Field} label="Period" options=${periods} value=${period} onValue=${text('period')} />`}
      ${!isOfSlots && period === '' && html`<${Field} label="Window" placeholder="1m" value=${textOf(body.window)} onValue=${text('window')} />`}
      ${typeof body.block !== 'object' && html`<${Field} label="Block for (optional)" placeholder="10m" value=${textOf(body.block)} onValue=${text('block')} />`}
    </div>
    <div class="row">
      <${Field} label="Mode" options=${{ '': 'enforce', shadow: 'shadow: report only' }} value=${body.mode === 'shadow' ? 'shadow' : ''} onValue=${text('mode')} />
      <${Field} label="Applies to" options=${{ '': 'plans and routes that name it', all: 'all subjects' }} value=${textOf(body.applies)} onValue=${text('applies')} />
    </div>`
}

function PlanFields({ body, set }: FieldsProps) {
  const limits = useAnswer<Page<Entity>>('/v1/limits?limit=1000').data?.items.map(({ name }) => name) ?? []
  const prices = useAnswer<Page<Entity>>('/v1/prices?limit=1000').data?.items.map(({ name }) => name) ?? []
  const chosen = Array.isArray(body.limits) ? body.limits.map(String) : []
  const toggle = (name: string) => () =>
    set('limits', chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name])
  return html`
    <fieldset class="stack"><legend>Limits</legend>${limits.map((name) => html`<label key=${name}><input type="checkbox" checked=${chosen.includes(name)} onChange=${toggle(name)} /> ${name}</label>`)}</fieldset>
    <${Field} label="Price list" options=${{ '': 'none', ...Object.fromEntries(prices.map((one) => [one, one])) }} value=${textOf(body.prices)} onValue=${(value: string) => set('prices', value === '' ? undefined : value)} />
    <label><input type="checkbox" checked=${body.selfService === true} onChange=${() => set('selfService', body.selfService === true ? undefined : true)} /> Customers may read their own usage</label>
    <label><input type="checkbox" checked=${body.ownAlerts === true} onChange=${() => set('ownAlerts', body.ownAlerts === true ? undefined : true)} /> Customers may choose their own alerts</label>`
}

const forms: Readonly<Record<string, (props: FieldsProps) => unknown>> = { limits: LimitFields, plans: PlanFields }

function parsed(text: string): object {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Refusal(400, { detail: `The settings are not valid JSON: ${(error as Error).message}.` })
  }
}

/**
 * Changes one part: limits and plans in a form, everything as JSON. An edit of somebody else in between is not
 * overwritten: the API refuses the second.
 */
export function PartForm({ path, kind, name, settings: { body, etag }, again }: PartProps) {
  const [edited, setEdited] = useState<Body>()
  const [text, setText] = useState<string>()
  const now = edited ?? body
  const set = (member: string, value: unknown, without: readonly string[] = []) => {
    const rest = Object.fromEntries(Object.entries(now).filter(([one]) => one !== member && !without.includes(one)))
    setEdited(value === undefined ? rest : { ...rest, [member]: value })
  }
  const run = async () => {
    await send('PUT', path, text === undefined ? now : parsed(text), { 'If-Match': etag })
    setEdited(undefined)
    setText(undefined)
  }
  const said = () => html`<p>Every ingress applies it within a second. <a href=${hrefOf('/changes')}>History</a></p>`
  const json = html`<label class="field">Settings of ${name}, as JSON<textarea rows="12" spellcheck=${false} value=${text ?? JSON.stringify(now, undefined, 2)} onInput=${(event: Event) => setText(typed(event))}></textarea></label>`
  const form = forms[kind]
  const about = html`
    ${form !== undefined && text === undefined && html`<${form} body=${now} set=${set} />`}
    ${form === undefined ? json : html`<details><summary>All settings, as JSON</summary>${json}</details>`}
    <p class="quiet">To preview the impact, <a href=${hrefOf('/policy/change')}>edit the full policy</a>.</p>`
  return html`<${Action} label="Change" scope="write" about=${about} run=${run} said=${said} again=${again} />`
}
