import type { Alert } from '@weir/api/alerts.ts'
import type { Entity } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import { count } from '@weir/core/format.ts'
import { useState } from 'preact/hooks'
import { send, useAnswer } from '../api.ts'
import { ago } from '../format.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { Action } from '../parts/dialog.ts'
import { Copy, Panel } from '../parts/panel.ts'
import { inline } from '../parts/settings.ts'
import { type Column, Table } from '../parts/table.ts'
import { Part, Subject, Time } from '../parts/words.ts'
import { may } from '../session.ts'
import { isFailed, isSubject, outcome, saidAsked } from './alerts.ts'

type Step = Alert['deliveries'][number]

/** What the facts of alerts are called, where the name of the field is not what one says. */
const factNames: Readonly<Record<string, string>> = {
  percent: 'Threshold',
  usual: 'Usual',
  prices: 'Price list',
  runs_out: 'Runs out',
  by: 'Counted by',
  amount: 'Cost so far',
  decision_id: 'Decision',
  more: 'Further blocks',
}
/** Facts that are parts of the policy. */
const partKinds: Readonly<Record<string, string>> = {
  limit: 'limits',
  prices: 'prices',
  watch: 'watches',
  endpoint: 'endpoints',
}
const nameOfFact = (name: string) =>
  factNames[name] ?? name.replaceAll('_', ' ').replace(/^./, (first) => first.toUpperCase())

function fact(name: string, value: unknown) {
  const kind = partKinds[name]
  if (kind !== undefined && value !== '') return html`<${Part} kind=${kind} name=${String(value)} />`
  if (name === 'decision_id') return html`<a href=${hrefOf(`/decisions/${String(value)}`)}>${String(value)}</a>`
  if (name === 'percent' && value !== null) return `${String(value)}%`
  if (typeof value === 'number') return count(value)
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)) return html`<${Time} at=${value} />`
  if (name === 'alerts' && Array.isArray(value))
    return value.map(({ id, title }) => html`<div key=${id}><a href=${hrefOf(`/alerts/${id}`)}>${title}</a></div>`)
  return value === null ? 'unknown' : inline(value)
}

/** What an alert says: a time that begins and one that ends are one fact. */
function Facts({ alert }: { readonly alert: Alert }) {
  const { type, subject, time, data } = alert
  const isEnd = (name: string) => name.endsWith('_end') && Object.hasOwn(data, name.replace(/_end$/, '_start'))
  return html`<dl class="facts">
    <dt>Type</dt><dd>${type}</dd>
    ${isSubject(subject) && html`<dt>Subject</dt><dd><${Subject} id=${subject} /></dd>`}
    <dt>Raised</dt><dd><${Time} at=${time} isLong /></dd>
    ${Object.entries(data)
      .filter(([name, value]) => value !== '' && !isEnd(name))
      .map(([name, value]) => {
        const span = name.replace(/_start$/, '')
        const end = span === name ? undefined : data[`${span}_end`]
        return html`<dt key=${name}>${nameOfFact(span)}</dt><dd>${fact(name, value)}${end !== undefined && html` to ${fact('', end)}`}</dd>`
      })}
  </dl>`
}

/** Sends an alert again, to one endpoint or wherever it went. */
function Redeliver(props: { readonly path: string; readonly endpoint?: string; readonly again: () => void }) {
  const { path, endpoint, again } = props
  const run = () => send('POST', `${path}/redeliver`, { endpoint })
  const where = endpoint ?? 'all its endpoints, including those that have it'
  const about = html`<p>Resends the alert to ${where}, under the same id, so receivers can ignore duplicates.</p>`
  return html`<${Action} label=${endpoint === undefined ? 'Resend everywhere' : 'Resend'} scope="write" about=${about} run=${run} said=${saidAsked} again=${again} />`
}

/** Says which endpoints are private: their answers are not kept. */
function usePrivate() {
  const { data } = useAnswer<Page<Entity>>(may('read') ? '/v1/endpoints?limit=1000' : undefined)
  return (endpoint: string) =>
    data?.items.some(({ name, body }) => name === endpoint.split('/', 1)[0] && body.allowPrivate === true) === true
}

const said = ({ error, answer, endpoint, status }: Step, isPrivate: (endpoint: string) => boolean) =>
  html`${error} ${answer !== '' ? html`<code>${answer}</code>` : status > 0 && isPrivate(endpoint) && html`<span class="quiet">(responses from private endpoints are not stored)</span>`}`

interface StepsProps {
  readonly steps: readonly Step[]
  /** Attempts at an endpoint, at most. */
  readonly most: number
  readonly isPrivate: (endpoint: string) => boolean
}

interface StandingProps extends StepsProps {
  readonly path: string
  readonly again: () => void
}

/** How an alert stands at each endpoint, by its last step there. */
function Standing({ path, steps, most, isPrivate, again }: StandingProps) {
  const last = [...new Map(steps.map((step) => [step.endpoint, step])).values()]
  // Their buttons stay, and with them what was answered, although the delivery is no failed one any more.
  const [asked, setAsked] = useState<readonly string[]>([])
  const ask = (endpoint: string) => {
    setAsked([...asked, endpoint])
    again()
  }
  const columns: readonly Column<Step>[] = [
    {
      name: 'Endpoint',
      isPlain: true,
      cell: ({ endpoint }) =>
        html`<b><${Part} kind="endpoints" name=${endpoint.split('/', 1)[0] ?? ''} /></b>${endpoint.includes('/') && ` ${endpoint.slice(endpoint.indexOf('/') + 1)}`}`,
    },
    { name: 'Outcome', isPlain: true, cell: (step) => outcome(step.outcome) },
    {
      name: 'Next attempt',
      cell: ({ attempt, next_try: next }) =>
        next === null
          ? ''
          : html`${attempt + 1} of ${most}, <span title=${next}>${Date.parse(next) <= Date.now() ? 'now' : ago(Date.parse(next))}</span>`,
    },
    { name: 'Response', isPlain: true, cell: (step) => said(step, isPrivate) },
    {
      name: '',
      isPlain: true,
      cell: ({ endpoint, outcome: what }) =>
        (isFailed(what) || asked.includes(endpoint)) &&
        html`<div class="row end"><${Redeliver} path=${path} endpoint=${endpoint} again=${() => ask(endpoint)} /></div>`,
    },
  ]
  return html`<${Table} caption="Delivery status" columns=${columns} rows=${last} keyOf=${({ endpoint }: Step) => endpoint} />`
}

/** Delivery log, the last one first. */
function Steps({ steps, most, isPrivate }: StepsProps) {
  // What was queued and then tried is told by the try.
  const told = steps.filter(
    (step, at) => step.outcome !== 'queued' || !steps.slice(at + 1).some(({ endpoint }) => endpoint === step.endpoint),
  )
  const columns: readonly Column<Step>[] = [
    { name: 'When', isPlain: true, cell: ({ at }) => html`<${Time} at=${at} />` },
    { name: 'Endpoint', isPlain: true, cell: ({ endpoint }) => endpoint },
    { name: 'Attempt', isNumber: true, cell: ({ attempt }) => (attempt === 0 ? '–' : `${attempt} of ${most}`) },
    { name: 'Outcome', isPlain: true, cell: (step) => outcome(step.outcome) },
    { name: 'Status', isNumber: true, cell: ({ status }) => (status === 0 ? '–' : status) },
    { name: 'ms', isNumber: true, isMinor: true, cell: ({ ms }) => count(ms) },
    { name: 'Response', isPlain: true, cell: (step) => said(step, isPrivate) },
  ]
  return html`<${Table} caption="Delivery log" columns=${columns} rows=${told.toReversed()} keyOf=${({ endpoint, at, outcome: what }: Step) => `${endpoint} ${at} ${what}`} />`
}

/** One alert: what it says, how it stands at each endpoint, and every step there. */
export function AlertPage({ id }: { readonly id: string }) {
  const path = `/v1/alerts/${encodeURIComponent(id)}`
  const asked = useAnswer<Alert>(path, 5_000)
  const { data, again } = asked
  const steps = data?.deliveries ?? []
  const isPrivate = usePrivate()
  return html`
    <div class="head">
      <div><h1>${data === undefined ? 'Alert' : data.summary}</h1><code class="quiet">${id}</code></div>
      <div class="row"><${Copy} text=${location.href} label="Copy link" />${steps.length > 0 && html`<${Redeliver} path=${path} again=${again} />`}</div>
    </div>
    <${Panel} title="Details" asked=${asked} path=${path} rows=${9}>
      ${(alert: Alert) => html`<${Facts} alert=${alert} />`}
    <//>
    ${
      data !== undefined &&
      html`<section class="panel" aria-label="Deliveries"><header><h2>Deliveries</h2></header>
        ${steps.length === 0 ? html`<p class="empty">Not sent to any endpoint.</p>` : html`<${Standing} path=${path} steps=${steps} most=${data.attempts_max} isPrivate=${isPrivate} again=${again} />`}
      </section>
      ${steps.length > 0 && html`<section class="panel" aria-label="Delivery log"><header><h2>Delivery log</h2></header><${Steps} steps=${steps} most=${data.attempts_max} isPrivate=${isPrivate} /></section>`}`
    }
  `
}
