import type { LimitState } from '@weir/api/limits.ts'
import { ago, fullTime, longTime, time } from '../format.ts'
import { html } from '../html.ts'
import { hrefOf, zoneNow } from '../location.ts'
import { isOwn, may } from '../session.ts'

/** Allowed or refused: by a sign and a word, never by colour alone. */
export function Verdict(of: { readonly outcome: string; readonly mode: string; readonly reason: string }) {
  const { outcome, mode, reason } = of
  if (outcome === 'deny') return html`<span class="word refused">✕ refused</span>`
  if (mode === 'shadow') return html`<span class="word shadow">◌ allowed; a shadow limit would refuse it</span>`
  if (reason === 'unavailable') return html`<span class="word degraded">▽ allowed without Redis</span>`
  if (reason !== 'ok') return html`<span class="word degraded">▽ allowed, degraded</span>`
  return html`<span class="word allowed">✓ allowed</span>`
}

/** A time in the chosen zone; hovering shows its offset, and the time in UTC. */
export function Time(props: { readonly at: string; readonly isLong?: boolean; readonly zone?: string }) {
  const { at, isLong = false, zone = zoneNow() } = props
  return html`<time class="time" datetime=${at} title=${`${fullTime(at, zone)}, ${ago(Date.parse(at))}`}>${isLong ? longTime(at, zone) : time(at, zone)}</time>`
}

/** Subjects that no customer has the name of. */
const meant: Readonly<Record<string, string>> = { '': 'none', _unauthenticated: 'no valid key', _all: 'everyone' }

/** A subject's name, which leads to it; customers are where it would lead. */
export function Subject({ id }: { readonly id: string }) {
  if (id === '') return html`<span class="quiet">${meant['']}</span>`
  return isOwn() ? nameOf(id) : html`<a href=${hrefOf(`/subjects/${encodeURIComponent(id)}`)}>${nameOf(id)}</a>`
}

/** How a subject is called. */
export const nameOf = (id: string): string => meant[id] ?? id

/** How units are known. */
const basisNames: Readonly<Record<string, string>> = { reported: 'Reported', counted: 'Counted', bound: 'As held' }

/** How a value of a column of usage is called. */
export function valueName(column: string, value: string): string {
  if (column === 'subject') return nameOf(value)
  if (column === 'basis') return basisNames[value] ?? value
  return column === 'route' && value === '*' ? 'no matching route' : value
}

/** A part of the policy by its name, which leads to its settings. */
export const Part = ({ kind, name }: { readonly kind: string; readonly name: string }) =>
  may('read') ? html`<a href=${hrefOf('/policy', { kind, name })}>${name}</a>` : name

/** Why a limit applies: `plan free`, `route POST /v1/search`, `applies: all`, `acme's own size instead of 100`. */
export const Because = ({ words }: { readonly words: readonly string[] }) =>
  html`${words.map((one, at) => {
    const [, word = '', name = ''] = /^(plan|route) (\S+(?: \/\S*)?)/.exec(one) ?? []
    const [, above = ''] = /^plan \S+ of (.+)$/.exec(one) ?? []
    const [, subject = '', own = ''] = /^(.+?)('s own .*)$/.exec(one) ?? []
    return html`${at > 0 && ', '}${
      name !== ''
        ? html`${word} <${Part} kind=${`${word}s`} name=${name} />${above !== '' && html` of <${Subject} id=${above} />`}`
        : subject !== ''
          ? html`<${Part} kind="subjects" name=${subject} />${own}`
          : one
    }`
  })}`

/** From this share on a limit is near. */
const nearShare = 0.8

/** What of a limit's count is only held, as it is neither used nor left; a block leaves nothing either. */
export const heldOf = ({ used, remaining, capacity, period, blocked_ms: blocked }: LimitState): number =>
  period === null || used === null || remaining === null || (blocked ?? 0) > 0
    ? 0
    : Math.max(0, capacity - used - remaining)

/** How much of a size is used, or was: what is past is not in the colours of an alarm. */
export function Meter({
  used,
  size,
  held = 0,
  isPast = false,
}: {
  readonly used: number
  /** What is neither used nor left. */
  readonly held?: number
  readonly size: number
  readonly isPast?: boolean
}) {
  const share = size === 0 ? 1 : Math.min(1, used / size)
  const withHeld = Math.min(1, share + (held === 0 ? 0 : held / size))
  return html`<span
    class=${`meter ${isPast ? '' : share >= 1 ? 'full' : share >= nearShare ? 'near' : ''}`}
    role="meter"
    aria-valuemin="0"
    aria-valuemax=${size}
    aria-valuenow=${used}
    aria-label=${`${used} of ${size} used${held === 0 ? '' : `, ${held} held`}`}
  >
    <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width=${100 * withHeld} height="10" opacity="0.4" /><rect width=${100 * share} height="10" /></svg>
  </span>`
}
