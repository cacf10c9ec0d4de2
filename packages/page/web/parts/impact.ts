import { useState } from 'preact/hooks'
import { type Refusal, send } from '../api.ts'
import { count } from '../format.ts'
import { html } from '../html.ts'
import { hrefOf } from '../place.ts'
import { Panel } from './panel.ts'
import { type Column, Table } from './table.ts'

/** Refusals, as recorded and by the edited policy; null where that is not known. */
interface Refusals {
  readonly before: number
  readonly at_least: number | null
  readonly at_most: number | null
}

interface LimitImpact extends Refusals {
  readonly limit: string
  readonly edit: string
  readonly subjects: readonly (Refusals & { readonly subject: string })[]
  readonly more_subjects: number
}

interface Impact {
  readonly estimate: boolean
  readonly assumptions: readonly string[]
  readonly limits: readonly LimitImpact[]
}

const wouldBe = ({ at_least, at_most }: Refusals) => {
  if (at_least === null || at_most === null) return 'not known'
  return at_least === at_most ? count(at_most) : `${count(at_least)} to ${count(at_most)}`
}

/** Subjects that a row names. */
const shownMax = 5

const columns: readonly Column<LimitImpact>[] = [
  { name: 'Limit', cell: ({ limit, edit }) => html`${limit} <span class="small quiet">${edit}</span>` },
  { name: 'Refused', isNumber: true, cell: ({ before }) => count(before) },
  { name: 'Would be', isNumber: true, cell: wouldBe },
  {
    name: 'Who',
    cell: ({ subjects, more_subjects: more }) => {
      const left = more + Math.max(0, subjects.length - shownMax)
      return html`${subjects.slice(0, shownMax).map(
        (one) => html`<div key=${one.subject} class="small">
          <a href=${hrefOf(`/subjects/${encodeURIComponent(one.subject)}`)}>${one.subject}</a> ${count(one.before)} → ${wouldBe(one)}
        </div>`,
      )}${left > 0 && html`<div class="small quiet">and ${count(left)} more</div>`}`
    },
  },
]

interface Told {
  readonly of: string
  readonly data?: Impact
  readonly error?: Refusal
  readonly atMs?: number
}

/** What an edited policy would have refused in the last days; asked for, because it may take seconds. */
export function ImpactPanel({ text }: { readonly text: string }) {
  const [told, setTold] = useState<Told>()
  const tell = () => {
    setTold({ of: text })
    const end = (how: Partial<Told>) =>
      setTold((now) => (now?.of === text ? { of: text, atMs: Date.now(), ...how } : now))
    send<Impact>('POST', '/v1/policy/impact', text).then(
      (data) => end({ data }),
      (error: Refusal) => end({ error }),
    )
  }
  const title = 'Impact, last 7 days'
  if (told?.of !== text) {
    return html`<section class="panel" aria-label=${title}><header><h2>${title}</h2></header>
      <p>Which requests of the last 7 days would this have refused? <button onClick=${tell}>Tell the impact</button></p>
    </section>`
  }
  const { data, error, atMs } = told
  return html`<${Panel} title=${title} asked=${{ data, error, atMs, again: tell }} empty=${({ limits }: Impact) => (limits.length === 0 ? 'No limit is edited.' : undefined)}>
    ${({ limits, estimate, assumptions }: Impact) => html`<div class="stack">
      <${Table} caption=${title} columns=${columns} rows=${limits} keyOf=${({ limit }: LimitImpact) => limit} />
      <details class="small quiet"><summary>${estimate ? 'An estimate. It assumes:' : 'It assumes:'}</summary><ul>${assumptions.map((one) => html`<li key=${one}>${one}</li>`)}</ul></details>
    </div>`}
  <//>`
}
