import type { LimitState, SubjectLimits } from '@weir/api/limits.ts'
import { count, length, quantity } from '@weir/core/format.ts'
import { useState } from 'preact/hooks'
import { askSettings, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { Action } from './dialog.ts'
import { Field } from './field.ts'
import { Panel } from './panel.ts'
import { actionsOf, type Column, Table } from './table.ts'
import { Because, heldOf, Meter, Part, Time } from './words.ts'

const pathOfSubject = (id: string) => `/v1/subjects/${encodeURIComponent(id)}`

const heldText = (held: number, currency: string | null) => (held === 0 ? '' : `, ${quantity(held, currency)} held`)

const used = (limit: LimitState) => {
  const { used: now, capacity, by, currency } = limit
  const held = heldOf(limit)
  return now === null
    ? html`<span class="quiet">counts by ${by.filter((one) => one !== 'subject').join(', ')}</span>`
    : html`<span class="row tight"><${Meter} used=${now} size=${capacity} held=${held} />${quantity(now, currency)} of ${quantity(capacity, currency)}${heldText(held, currency)}</span>`
}

/** Seconds and minutes are waited for; of hours and days one wants to know when they end. */
const clockFromMs = 3_600_000
function Resets({ ms }: { readonly ms: number }) {
  if (ms < clockFromMs) return html`resets in ${length(ms)}`
  const at = new Date(Math.round((Date.now() + ms) / 1_000) * 1_000).toISOString()
  return html`resets <${Time} at=${at} /> (in ${length(ms)})`
}

const state = ({ blocked_ms: blocked, reset_ms: reset, mode, remaining, used: units }: LimitState) => {
  if (blocked !== null && blocked > 0) return html`<span class="word refused">✕ blocked for ${length(blocked)}</span>`
  if (mode === 'shadow') return html`<span class="word shadow">◌ shadow</span>`
  if (remaining === 0)
    return html`<span class="word refused">✕ used up</span>${reset !== null && html`, <${Resets} ms=${reset} />`}`
  if (reset === null) return ''
  return reset === 0 || units === 0 ? html`<span class="quiet">unused</span>` : html`<${Resets} ms=${reset} />`
}

const columns: readonly Column<LimitState>[] = [
  { name: 'Limit', isPlain: true, cell: ({ name }) => html`<b><${Part} kind="limits" name=${name} /></b>` },
  { name: 'Used', isPlain: true, cell: used },
  { name: 'Left', isNumber: true, cell: ({ remaining, currency }) => quantity(remaining, currency) },
  { name: 'State', isPlain: true, cell: state },
  { name: 'Source', isMinor: true, cell: ({ because }) => html`<${Because} words=${because} />` },
]

interface Done {
  readonly changed: readonly { readonly name: string; readonly used_up: number }[]
}

/** What is done to a limit of a subject. */
interface LimitAction {
  readonly id: string
  readonly limit: LimitState
  readonly again: () => void
}

/** Forgets what a limit of a subject counted. */
function Reset({ id, limit, again }: LimitAction) {
  const run = () => send('POST', `${pathOfSubject(id)}/limits/reset`, { limit: limit.name })
  const about = html`<p>Resets ${limit.used === null ? 'all' : quantity(limit.used, limit.currency)} used units of ${limit.name} and lifts its block. The history records it.</p>`
  return html`<${Action} label="Reset" scope="limits" about=${about} run=${run} again=${again} />`
}

function LiftBlock({ id, limit, again }: LimitAction) {
  const run = () => send('POST', `${pathOfSubject(id)}/limits/unblock`, { limit: limit.name })
  const said = ({ changed }: Done) =>
    changed.some(({ used_up: full }) => full > 0)
      ? html`<p>Block lifted. The count is still at its limit: reset it, or the next request will set a new block.</p>`
      : undefined
  const about = html`<p>Ends the block by ${limit.name} and keeps the count.</p>`
  return html`<${Action} label="Lift block" scope="limits" about=${about} run=${run} said=${said} again=${again} />`
}

/** How each limit of a subject stands; operators can give units back. */
export function LimitsNow({ id }: { readonly id: string }) {
  const path = `${pathOfSubject(id)}/limits`
  const asked = useAnswer<SubjectLimits>(path, 5_000)
  const { again } = asked
  const act = actionsOf<LimitState>(
    (limit) => html`
      ${(limit.blocked_ms ?? 0) > 0 && html`<${LiftBlock} id=${id} limit=${limit} again=${again} />`}
      ${isOfSubject(limit) && html`<${RaiseLimit} id=${id} limit=${limit} onDone=${again} />`}
      <${Reset} id=${id} limit=${limit} again=${again} />
    `,
  )
  const empty = ({ limits }: SubjectLimits) => (limits.length === 0 ? 'No limit applies.' : undefined)
  return html`<${Panel} title="Limits now" asked=${asked} path=${path} rows=${4} empty=${empty}>
    ${({ limits }: SubjectLimits) => html`<${Table} caption="Limits now" columns=${[...columns, act]} rows=${limits} keyOf=${({ name }: LimitState) => name} />`}
  <//>`
}

const isOfSubject = ({ by }: LimitState) => by.includes('subject') || by.includes('key')

interface RaiseProps {
  readonly id: string
  /** The limit, where a row is of one. */
  readonly limit?: Pick<LimitState, 'name' | 'size' | 'currency'>
  readonly onDone: () => void
}

/** Gives one subject a larger version of a limit that it meets. */
export function RaiseLimit({ id, limit, onDone }: RaiseProps) {
  const { data } = useAnswer<SubjectLimits>(limit === undefined ? `${pathOfSubject(id)}/limits` : undefined)
  const own = limit === undefined ? (data?.limits ?? []).filter(isOfSubject) : [limit]
  const [name, setName] = useState('')
  const [size, setSize] = useState('')
  const chosen = own.find((one) => one.name === name) ?? own[0]
  const money = chosen?.currency ?? null
  const run = async () => {
    if (chosen === undefined) return
    const { body, etag } = await askSettings(pathOfSubject(id))
    const limits = {
      ...Object(body.limits),
      [chosen.name]: { ...Object(body.limits)?.[chosen.name], size: money === null ? Number(size) : size },
    }
    await send('PUT', pathOfSubject(id), { ...body, limits }, { 'If-Match': etag })
  }
  const said = () =>
    html`<p>${chosen?.name} of ${id} is now ${money === null ? count(Number(size)) : `${size} ${money}`}. Its count is kept.</p>`
  const about = html`
    <p>${id} gets a size of its own; the plan, and others of it, stay as they are.</p>
    <${Field} label="Limit" options=${Object.fromEntries(own.map((one) => [one.name, `${one.name}: ${quantity(one.size, one.currency)} now`]))} value=${chosen?.name ?? ''} onValue=${setName} />
    <${Field} label="New size" type="number" min="0" step=${money === null ? '1' : 'any'} required value=${size} onValue=${setSize} />`
  return html`<${Action} label=${limit === undefined ? 'Raise a limit' : 'Raise'} scope="write" isDisabled=${chosen === undefined} about=${about} run=${run} said=${said} again=${onDone} />`
}
