import { count } from '@weir/core/format.ts'
import { html } from '../html.ts'

export interface Bar {
  readonly name: string
  readonly href?: string | undefined
  readonly value: number
  readonly aside?: string
}

/** Who has how much, the largest first. */
export function Bars({
  bars,
  kind = 'allowed',
}: {
  readonly bars: readonly Bar[]
  readonly kind?: 'allowed' | 'refused'
}) {
  const max = Math.max(1, ...bars.map(({ value }) => value))
  return html`<div class=${`bars ${kind}`}>
    ${bars.map(
      ({ name, href, value, aside = '' }) => html`
        <span class="name">${href === undefined ? name : html`<a href=${href}>${name}</a>`}</span>
        <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width=${Math.max(0.5, (100 * value) / max)} height="10" rx="0.6" /></svg>
        <span class="number">${count(value)}</span>
        <span class="number quiet aside">${aside}</span>
      `,
    )}
  </div>`
}
