import type { LimitState, SubjectLimits } from '@weir/api/limits.ts'
import { count, length } from '@weir/core/format.ts'
import { useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { Panel } from './panel.ts'
import { heldOf, Meter, Time } from './words.ts'

const periodNames: Readonly<Record<string, string>> = {
  minute: 'this minute',
  hour: 'this hour',
  day: 'today',
  week: 'this week',
  month: 'this month',
}

interface LimitProps {
  readonly limit: LimitState
  /** The zone in which the customer's days begin. */
  readonly zone: string
}

/** When a limit is whole again, by the clock in the customer's zone. */
function Resets({ limit: { reset_ms: ms, blocked_ms: blocked }, zone }: LimitProps) {
  if (blocked !== null && blocked > 0) return html`<span class="word refused">✕ blocked for ${length(blocked)}</span>`
  if (ms === null || ms === 0) return null
  const at = new Date(Math.round((Date.now() + ms) / 1_000) * 1_000).toISOString()
  return html`<span class="quiet">resets <${Time} at=${at} zone=${zone} /> (in ${length(ms)})</span>`
}

function OwnLimit({ limit, zone }: LimitProps) {
  const { name, title, about, used, capacity, remaining, period } = limit
  const left = `${count(remaining)} of ${count(capacity)} left${period === null ? '' : ` ${periodNames[period]}`}`
  return html`<li>
    <div><b>${title ?? name}</b>${about !== null && html` <span class="quiet">${about}</span>`}</div>
    <span class="row"><${Meter} used=${Number(used)} size=${capacity} held=${heldOf(limit)} /><b>${remaining === 0 && '✕ '}${left}</b><${Resets} limit=${limit} zone=${zone} /></span>
  </li>`
}

/** What is left of a customer's limits. A limit that others share has no count to show. */
export function OwnLimits({ id }: { readonly id: string }) {
  const path = `/v1/subjects/${encodeURIComponent(id)}/limits`
  const asked = useAnswer<SubjectLimits>(path, 5_000)
  const own = ({ limits }: SubjectLimits) => limits.filter(({ used }) => used !== null)
  const empty = (all: SubjectLimits) => (own(all).length === 0 ? 'No limit applies.' : undefined)
  return html`<${Panel} title="Your limits" asked=${asked} path=${path} rows=${4} empty=${empty}>
    ${(all: SubjectLimits) => html`<div class="stack">
      ${all.plan !== '' && html`<p>Plan <b>${all.plan_title ?? all.plan}</b>${all.plan_about !== null && html` <span class="quiet">${all.plan_about}</span>`}</p>`}
      <ul class="stack bare-list">${own(all).map((limit) => html`<${OwnLimit} key=${limit.name} limit=${limit} zone=${all.time_zone} />`)}</ul>
      <p class="small quiet">Times are in ${all.time_zone}.</p>
    </div>`}
  <//>`
}
