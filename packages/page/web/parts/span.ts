import { html } from '../html.ts'
import { setParams, usePlace } from '../place.ts'

/** The spans that the frame offers, with the step that makes some dozens of points of each. */
const spans = {
  '1h': { label: '1 hour', ms: 3_600_000, step: 'minute' },
  '24h': { label: '24 hours', ms: 86_400_000, step: 'hour' },
  '7d': { label: '7 days', ms: 604_800_000, step: 'hour' },
  '30d': { label: '30 days', ms: 2_592_000_000, step: 'day' },
  '365d': { label: '1 year', ms: 31_536_000_000, step: 'day' },
} as const

export type SpanName = keyof typeof spans
const isSpan = (name: string | null): name is SpanName => name !== null && name in spans

/** The span and the zone that are chosen: of the address, so that a link shows the same. */
export function useSpan() {
  const { params } = usePlace()
  const given = params.get('span')
  const name = isSpan(given) ? given : '24h'
  return { name, ...spans[name], from: `now-${name}`, zone: params.get('zone') ?? 'UTC' }
}

/** The browser's own zone, beside UTC. */
const zones = () => [...new Set(['UTC', Intl.DateTimeFormat().resolvedOptions().timeZone])]

export function SpanTools() {
  const { name, zone } = useSpan()
  const all = zones().includes(zone) ? zones() : [...zones(), zone]
  const value = (event: Event) => (event.currentTarget as HTMLSelectElement).value
  return html`
    <label>
      <span class="hidden">Span</span>
      <select value=${name} onChange=${(event: Event) => setParams({ span: value(event), after: undefined })}>
        ${Object.entries(spans).map(([one, { label }]) => html`<option value=${one}>${label}</option>`)}
      </select>
    </label>
    <label>
      <span class="hidden">Time zone</span>
      <select value=${zone} onChange=${(event: Event) => setParams({ zone: value(event) })}>
        ${all.map((one) => html`<option value=${one}>${one}</option>`)}
      </select>
    </label>
  `
}
