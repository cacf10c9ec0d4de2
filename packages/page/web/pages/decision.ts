import type { Explained, Hint, LimitThen } from '../answers.ts'
import { useAnswer } from '../api.ts'
import { count, length } from '../format.ts'
import { html } from '../html.ts'
import { Copy, Panel } from '../parts/panel.ts'
import { type Column, Table } from '../parts/table.ts'
import { Meter, Subject, Time, Verdict } from '../parts/words.ts'
import { hrefOf } from '../place.ts'

const hintText = ({ how, ms = 0, at_most, limit, at_least, plan, together_with = [] }: Hint) => {
  if (how === 'wait') return `waiting ${length(ms)}`
  if (how === 'cost') return `a cost of ${at_most} or less`
  if (how === 'plan') return `the plan ${plan}`
  const others = together_with.length === 0 ? '' : `, together with more of ${together_with.join(', ')}`
  return `a ${how} of ${limit} of ${count(at_least)} or more${others}`
}

const limitColumns: readonly Column<LimitThen>[] = [
  {
    name: 'Limit',
    cell: ({ name, refused }) =>
      html`${name} ${refused && html`<span class="word refused">✕<span class="hidden"> refused</span></span>`}`,
  },
  {
    name: 'Used then',
    cell: ({ used, size }) =>
      used === null
        ? html`<span class="quiet">not said</span>`
        : html`<span class="row"><${Meter} used=${used} size=${size} /> ${count(used)} of ${count(size)}</span>`,
  },
  { name: 'Needed', isNumber: true, cell: ({ needed }) => count(needed) },
  { name: 'Left', isNumber: true, cell: ({ remaining }) => count(remaining) },
  { name: 'Free again', cell: ({ reset_at }) => reset_at !== undefined && html`<${Time} at=${reset_at} />` },
  { name: 'Because of', cell: ({ because = [] }) => because.join(', ') },
  {
    name: 'Counted by',
    cell: ({ by }) =>
      Object.entries(by)
        .map(([name, value]) => `${name} ${value}`)
        .join(', '),
  },
]

function Policy({ policy }: { readonly policy: NonNullable<Explained['policy']> }) {
  const { exact, change, at, since_changed: changed } = policy
  return html`<div class="stack">
    <p>
      ${exact ? 'The policy of then' : 'Probably the policy of then'}:
      ${change === undefined ? ' older than the history goes back.' : html` <a href=${hrefOf(`/changes/${change}`)}>change ${change.slice(0, 13)}…</a> ${at !== undefined && html`of <${Time} at=${at} />`}`}
    </p>
    ${
      changed.length === 0
        ? html`<p class="quiet">Nothing of it has changed since.</p>`
        : html`<ul>
            ${changed.map(({ kind, name, before, now }) => html`<li key=${`${kind} ${name}`}>${kind} ${name}: <span class="taken">${JSON.stringify(before)}</span> → <span class="added">${JSON.stringify(now)}</span></li>`)}
          </ul>`
    }
  </div>`
}

function Facts({ data }: { readonly data: Explained }) {
  const { outcome_record: answered } = data
  return html`<dl class="facts">
    <dt>Subject</dt><dd><${Subject} id=${data.subject} /></dd>
    <dt>Route</dt><dd>${data.route} (${data.method})</dd>
    <dt>Cost</dt><dd>${data.cost} units${data.count > 1 && `; stands for ${count(data.count)} equal ones`}</dd>
    <dt>Plan</dt><dd>${data.plan || '–'}</dd>
    <dt>Key</dt><dd>${data.key_id || '–'}</dd>
    <dt>Address</dt><dd>${data.ip || 'not recorded'}</dd>
    <dt>Answer</dt><dd>${answered ? `${answered.status} after ${length(answered.duration_ms)} ${answered.error}` : 'none was recorded'}</dd>
    ${data.corrections.length > 0 && html`<dt>Corrected</dt><dd>${data.corrections.map(({ adjustment }) => `${adjustment > 0 ? '+' : ''}${adjustment} units`).join(', ')}</dd>`}
    ${data.alerts.length > 0 && html`<dt>Alerts</dt><dd>${data.alerts.map((id) => html`<a key=${id} href=${hrefOf(`/alerts/${id}`)}>${id.slice(0, 8)}…</a> `)}</dd>`}
  </dl>`
}

function Now({ data }: { readonly data: Explained }) {
  if (data.now === null)
    return html`<p class="quiet">Redis or the policy cannot be asked, or there is no such subject.</p>`
  const { allowed, denied_by: by, limits } = data.now
  return html`<div class="stack">
    <p>${allowed === null ? 'Not known.' : allowed ? html`The same request <span class="word allowed">✓ would be admitted</span>.` : html`The same request <span class="word refused">✕ would be refused</span> by ${by}.`}</p>
    ${limits.map(({ name, used, size }) => html`<div class="row" key=${name}><b>${name}</b> ${used !== null && html`<${Meter} used=${used} size=${size} />`} ${count(used)} of ${count(size)}</div>`)}
  </div>`
}

/** Why a request was allowed or refused, and what would have admitted it. */
export function DecisionPage({ id }: { readonly id: string }) {
  const path = `/v1/decisions/${encodeURIComponent(id)}`
  const asked = useAnswer<Explained>(path)
  const { data } = asked
  return html`
    <div class="head">
      <div><h1>Decision</h1><code>${id}</code></div>
      <${Copy} text=${location.href} label="Copy link" />
    </div>
    <${Panel} title="What was decided" asked=${asked} path=${path} rows=${5}>
      ${(one: Explained) => html`<div class="stack">
        <p><${Verdict} outcome=${one.outcome} mode=${one.mode} /> <${Time} at=${one.ts} isLong /></p>
        <p>${one.summary}</p>
        ${one.blocked_by !== null && one.blocked_by !== undefined && html`<p>The block was set by <a href=${hrefOf(`/decisions/${one.blocked_by.id}`)}>the decision of <${Time} at=${one.blocked_by.ts} /></a>.</p>`}
        ${one.would_have_allowed.length > 0 && html`<p>Would have helped: ${one.would_have_allowed.map(hintText).join(' · ')}</p>`}
        ${one.limits.length > 0 && html`<${Table} caption="Limits then" columns=${limitColumns} rows=${one.limits} keyOf=${({ name }: LimitThen, at: number) => `${name} ${at}`} />`}
      </div>`}
    <//>
    ${
      data !== undefined &&
      html`<div class="grid">
        <section class="panel third"><header><h2>Request</h2></header><${Facts} data=${data} /></section>
        <section class="panel third"><header><h2>Policy then and since</h2></header>${data.policy === null ? html`<p class="quiet">Not known.</p>` : html`<${Policy} policy=${data.policy} />`}</section>
        <section class="panel third"><header><h2>Now</h2></header><${Now} data=${data} /></section>
      </div>`
    }
    ${asked.error?.status === 404 && html`<p class="note">Answers of the ingress have their decision's id in the header <code>Weir-Decision</code>.</p>`}
  `
}
