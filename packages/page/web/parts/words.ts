import { ago, longTime, time } from '../format.ts'
import { html } from '../html.ts'
import { hrefOf } from '../place.ts'
import { useSpan } from './span.ts'

/** Allowed or refused: by a sign and a word, never by colour alone. */
export function Verdict({ outcome, mode = 'enforce' }: { readonly outcome: string; readonly mode?: string }) {
  if (outcome === 'deny') return html`<span class="word refused">✕ refused</span>`
  if (mode === 'shadow') return html`<span class="word shadow">◌ allowed, in shadow refused</span>`
  if (mode === 'degrade') return html`<span class="word degraded">▽ allowed, degraded</span>`
  return html`<span class="word allowed">✓ allowed</span>`
}

/** A time in the chosen zone; hovering shows it in UTC. */
export function Time({ at, isLong = false }: { readonly at: string; readonly isLong?: boolean }) {
  const { zone } = useSpan()
  return html`<time class="time" datetime=${at} title=${`${new Date(at).toISOString()}, ${ago(Date.parse(at))}`}>
    ${isLong ? longTime(at, zone) : time(at, zone)}
  </time>`
}

/** Subjects that no customer has the name of. */
const meant: Readonly<Record<string, string>> = { '': 'nobody', _unauthenticated: 'no valid key', _all: 'everybody' }

/** A subject's name, which leads to it. */
export const Subject = ({ id }: { readonly id: string }) =>
  id === ''
    ? html`<span class="quiet">${meant['']}</span>`
    : html`<a href=${hrefOf(`/subjects/${encodeURIComponent(id)}`)}>${nameOf(id)}</a>`

/** How a subject is called. */
export const nameOf = (id: string): string => meant[id] ?? id

/** How much of a size is used. */
export function Meter({ used, size }: { readonly used: number; readonly size: number }) {
  const share = size === 0 ? 1 : Math.min(1, used / size)
  return html`<span
    class=${`meter ${share >= 1 ? 'full' : ''}`}
    role="meter"
    aria-valuemin="0"
    aria-valuemax=${size}
    aria-valuenow=${used}
    aria-label=${`${used} of ${size} used`}
  >
    <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width=${100 * share} height="10" /></svg>
  </span>`
}
