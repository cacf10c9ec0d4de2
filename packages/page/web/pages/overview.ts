import type { ListedAlert } from '@weir/api/alerts.ts'
import type { Block } from '@weir/api/limits.ts'
import type { Entity } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import type { Status } from '@weir/api/status.ts'
import type { Usage } from '@weir/api/usage.ts'
import { change, count, counted } from '@weir/core/format.ts'
import { useEffect, useState } from 'preact/hooks'
import { pathOf, useAnswer } from '../api.ts'
import { ago, time } from '../format.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { Bars } from '../parts/bars.ts'
import { Chart } from '../parts/chart.ts'
import { Field } from '../parts/field.ts'
import { NewKey } from '../parts/key-list.ts'
import { liveChart, useLiveSeconds } from '../parts/live-seconds.ts'
import { Lost } from '../parts/lost.ts'
import { Copy, Panel } from '../parts/panel.ts'
import { useSpan } from '../parts/span.ts'
import { UsageChart } from '../parts/usage-chart.ts'
import { nameOf, Time } from '../parts/words.ts'
import { isFailed, notDeliveredHref } from './alerts.ts'

const freshMs = 15_000
/** After a first start one waits for the first decision. */
const firstMs = 1_000

function Health({ status }: { readonly status: Status }) {
  const { zone } = useSpan()
  const { complete_through: through, look, warnings, gaps, processes } = status
  const known = processes.map(({ metrics }) => metrics.weir_consumer_lag_records)
  const lags = known.filter((one) => typeof one === 'number')
  const lag = lags.length === 0 ? undefined : Math.max(...lags)
  const missing = gaps?.reduce((sum, one) => sum + Number(one.count), 0)
  return html`<div class="stack">
    <div class="figures health">
      <span class=${`word ${status.ok ? 'good' : 'refused'}`}>${status.ok ? '● all is well' : `✕ ${counted(look.length, 'problem')}`}</span>
      <span>${through === null ? 'nothing counted yet' : html`counted until <b class="time">${time(through, zone)}</b>, ${ago(Date.parse(through))}`}</span>
      ${typeof lag === 'number' && html`<span>lag <b>${count(lag)}</b></span>`}
      <span class=${status.redis === null ? '' : 'word refused'}>${status.redis === null ? 'Redis answers' : `✕ ${status.redis}`}</span>
      ${missing !== undefined && html`<span>gaps <b>${count(missing)}</b></span>`}
    </div>
    ${look.map((one) => html`<div class="fault" key=${one}>${one}</div>`)}
    ${warnings.length > 0 && html`<details class="small quiet"><summary>${counted(warnings.length, 'notice')}</summary>${warnings.map((one) => html`<p key=${one}>${one}</p>`)}</details>`}
  </div>`
}

/** What to do after a first start: a key, and a request with it. */
function FirstStart({ ingress }: { readonly ingress: string | null }) {
  const subjects = useAnswer<Page<Entity>>('/v1/subjects?limit=100').data?.items.map(({ name }) => name) ?? []
  const [subject, setSubject] = useState('')
  const [key, setKey] = useState('KEY')
  const chosen = subject || subjects[0]
  const command = `curl -i ${ingress ?? 'http://INGRESS:8080'}/ -H 'X-API-Key: ${key}'`
  return html`<div class="stack">
    <p>No decisions in this period yet. Create a key, then send a request through the ingress.</p>
    ${
      chosen === undefined
        ? html`<p>The policy has no subjects yet. <a href=${hrefOf('/policy/change')}>Add one</a>.</p>`
        : html`<div class="row"><${Field} isTool label="Subject" options=${Object.fromEntries(subjects.map((one) => [one, one]))} value=${chosen} onValue=${setSubject} /><${NewKey} subject=${chosen} onMade=${setKey} /></div>`
    }
    <pre>${command}</pre>
    <div><${Copy} text=${command} label="Copy" /></div>
  </div>`
}

/** What is decided this second. */
function Now() {
  const seen = useLiveSeconds('/v1/decisions/stream?of=sums')
  const last = seen.seconds.at(-1)
  return html`<section class="panel" aria-label="Now">
    <header><h2>Live</h2><a class="small" href=${hrefOf('/live')}>Open live</a></header>
    <div class="stack">
      <${Lost} connection=${seen.connection} />
      <div class="figures">
        <span class="figure"><b>${count(last?.allowed ?? null)}</b>allowed/s</span>
        <span class="figure"><b>${count(last?.denied ?? null)}</b>refused/s</span>
      </div>
      <${Chart} height=${110} title="Decisions per second" ...${liveChart(seen)} />
    </div>
  </section>`
}

/** Alerts of the span, and active blocks. */
function NeedsAttention() {
  const { range, label, zone } = useSpan()
  const path = pathOf('/v1/alerts', { ...range, time_zone: zone, limit: '6' })
  const alerts = useAnswer<Page<ListedAlert>>(path, freshMs)
  const blocks = useAnswer<Page<Block>>('/v1/blocks', freshMs).data?.items ?? []
  const hasFailed = ({ deliveries }: ListedAlert) => Object.values(deliveries).some(isFailed)
  const empty = ({ items }: Page<ListedAlert>) =>
    items.length + blocks.length === 0 ? 'No alerts in this period.' : undefined
  return html`<${Panel} title=${`Needs attention, ${label}`} asked=${alerts} path=${path} empty=${empty} tools=${html`<a class="small" href=${notDeliveredHref()}>Not delivered</a><a class="small" href=${hrefOf('/alerts')}>All</a>`}>
    ${({ items }: Page<ListedAlert>) => html`<ul class="news">
      ${blocks.length > 0 && html`<li><span class="small quiet">now</span><a href=${hrefOf('/blocks')}>${counted(blocks.length, 'caller')} blocked</a></li>`}
      ${items.map((alert) => html`<li key=${alert.id}><span class="small quiet"><${Time} at=${alert.time} /></span><span><a href=${hrefOf(`/alerts/${alert.id}`)}>${alert.summary}</a>${hasFailed(alert) && html` <span class="word refused small">✕ not delivered</span>`}</span></li>`)}
    </ul>`}
  <//>`
}

const subjectHref = (id: string) => hrefOf(`/subjects/${encodeURIComponent(id)}`)

/** The subjects with the most units. */
const MostUnits = ({ rows }: Pick<Usage, 'rows'>) =>
  html`<${Bars} bars=${rows.map(({ other, groups, subject = '', cost, change: more }) => ({
    name: other === true ? counted(Number(groups), 'other') : nameOf(subject),
    href: other === true || subject === '' ? undefined : subjectHref(subject),
    value: Number(cost),
    aside: change(more),
  }))} />`

const RefusedBy = ({ rows }: Pick<Usage, 'rows'>) =>
  html`<${Bars} kind="refused" bars=${rows.map(({ other, groups, denied_by = '', denied }) => ({
    name: other === true ? counted(Number(groups), 'other') : denied_by === '' ? 'no limit' : denied_by,
    href: other === true ? undefined : hrefOf('/decisions', { outcome: 'deny', denied_by }),
    value: Number(denied),
  }))} />`

export function Overview() {
  const { range, step, label, zone } = useSpan()
  const asked = (params: Record<string, string>) =>
    pathOf('/v1/usage', { ...range, numbers: 'text', time_zone: zone, ...params })
  const chartPath = asked({ step, fill: 'zero' })
  const topPath = asked({ step: 'total', by: 'subject', top: '8', compare: 'previous' })
  const deniedPath = asked({ step: 'total', by: 'denied_by', outcome: 'deny', order: '-denied', top: '8' })
  const [everyMs, setEveryMs] = useState(freshMs)
  const status = useAnswer<Status>('/v1/status', freshMs)
  const usage = useAnswer<Usage>(chartPath, everyMs)
  const most = useAnswer<Usage>(topPath, everyMs)
  const denied = useAnswer<Usage>(deniedPath, everyMs)
  const isFirst = usage.data?.totals.count === '0'
  useEffect(() => setEveryMs(isFirst ? firstMs : freshMs), [isFirst])
  const nothing =
    (words: string) =>
    ({ rows }: Usage) =>
      rows.length === 0 ? words : undefined
  return html`
    <h1 class="hidden">Overview</h1>
    <${Panel} class="strip" title="Status" asked=${status} path="/v1/status" rows=${1}>
      ${(data: Status) => html`<${Health} status=${data} />`}
    <//>
    <div class="grid">
      <${Panel} class="wide fills" title=${`Decisions, ${label}`} asked=${usage} path=${chartPath} rows=${15} empty=${(data: Usage) => (data.totals.count === '0' ? html`<${FirstStart} ingress=${status.data?.ingress ?? null} />` : undefined)}>
        ${(data: Usage) => html`<div class="stack">
          <div class="figures">
            <span class="figure"><b>${count(data.totals.allowed)}</b>allowed</span>
            <span class="figure"><b>${count(data.totals.denied)}</b>refused</span>
            <span class="figure"><b>${count(data.totals.cost)}</b>units</span>
          </div>
          <${UsageChart} usage=${data} title=${`Decisions, ${label}`} height=${320} />
        </div>`}
      <//>
      <div class="third stack ends"><${Now} /><${NeedsAttention} /></div>
      <${Panel} class="half" title="Most units" asked=${most} path=${topPath} rows=${9} empty=${nothing('Nothing in this period.')} tools=${html`<a class="small" href=${hrefOf('/usage', { by: 'subject', compare: 'previous' })}>All</a>`}>
        ${({ rows }: Usage) => html`<${MostUnits} rows=${rows} />`}
      <//>
      <${Panel} class="half" title="Refused by limit" asked=${denied} path=${deniedPath} rows=${9} empty=${nothing('Nothing was refused.')} tools=${html`<a class="small" href=${hrefOf('/usage', { by: 'denied_by', outcome: 'deny', order: '-denied', measure: 'denied' })}>All</a>`}>
        ${({ rows }: Usage) => html`<${RefusedBy} rows=${rows} />`}
      <//>
    </div>
  `
}
