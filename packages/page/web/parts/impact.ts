import type { Impact } from '@weir/api/policy.ts'
import { count, counted, percent } from '@weir/core/format.ts'
import { useEffect, useState } from 'preact/hooks'
import { type AnswerState, pathOf, type Refusal, send } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { Field } from './field.ts'
import { Panel } from './panel.ts'
import { type Column, Table } from './table.ts'

/** Subjects that a row names. */
const shownMax = 5

const columns: readonly Column<Impact['limits'][number]>[] = [
  { name: 'Limit', cell: ({ limit, edit }) => html`${limit} <span class="small quiet">${edit}</span>` },
  { name: 'Refused', isNumber: true, cell: ({ before }) => count(before) },
  { name: 'Would be', isNumber: true, cell: ({ after }) => count(after) },
  {
    name: 'Customers',
    cell: ({ subjects }) => {
      const left = subjects.length - shownMax
      return html`${subjects.slice(0, shownMax).map(
        (one) => html`<div key=${one.subject} class="small">
          <a href=${hrefOf(`/subjects/${encodeURIComponent(one.subject)}`)}>${one.subject}</a> ${count(one.before)} → ${count(one.after)}
        </div>`,
      )}${left > 0 && html`<div class="small quiet">and ${count(left)} more</div>`}`
    },
  },
]

const isSame = ({ before, after }: Impact['limits'][number]) => before === after

const spans = { 'now-7d': '7 days', 'now-24h': '24 hours', 'now-1h': '1 hour' }

function Told({ impact }: { readonly impact: Impact }) {
  const { exact, assumptions, subjects, decisions, share, limits } = impact
  const part = share === null ? '' : `, ${percent(share, 1)} of all`
  return html`<div class="stack">
    <p>Replayed: ${counted(decisions, 'decision')} of ${counted(subjects, 'subject')}${part}.</p>
    ${limits.every(isSame) ? html`<p>No subject would be refused more or less often.</p>` : html`<${Table} caption="Impact" columns=${columns} rows=${limits.filter((one) => !isSame(one))} keyOf=${({ limit }: Impact['limits'][number]) => limit} />`}
    <details class="small quiet"><summary>${exact ? 'Assumptions' : 'An estimate. Assumptions'}</summary><ul>${assumptions.map((one) => html`<li key=${one}>${one}</li>`)}</ul></details>
  </div>`
}

type Answer = Partial<AnswerState<Impact>> & { readonly of: string }

/** How long somebody has stopped editing before requests are decided again. */
const restMs = 800

/** What an edited policy would have refused in the last days. */
export function ImpactPanel({ text }: { readonly text: string }) {
  const [from, setFrom] = useState('now-7d')
  const [subject, setSubject] = useState('')
  const [answer, setAnswer] = useState<Answer>()
  const path = pathOf('/v1/policy/impact', { from, subject })
  const of = `${path}\n${text}`
  const ask = () => {
    const end = (how: Partial<Answer>) => setAnswer((now) => (now?.of === of ? { of, atMs: Date.now(), ...how } : now))
    send<Impact>('POST', path, text).then(
      (data) => end({ data }),
      (error: Refusal) => end({ error }),
    )
  }
  useEffect(() => {
    setAnswer({ of })
    const timer = setTimeout(ask, restMs)
    return () => clearTimeout(timer)
  }, [of])
  const tools = html`<${Field} isTool label="Period" options=${spans} value=${from} onValue=${setFrom} />
    <${Field} isTool label="Subject" on="change" suggest="subject" value=${subject} onValue=${setSubject} />`
  const own = answer?.of === of ? answer : {}
  return html`<${Panel} title="Impact" tools=${tools} asked=${{ ...own, again: ask }}>
    ${(impact: Impact) => html`<${Told} impact=${impact} />`}
  <//>`
}
