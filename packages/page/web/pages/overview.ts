import { useEffect, useState } from 'preact/hooks'
import type { Alert, Page, Status, Usage } from '../answers.ts'
import { pathOf, useAnswer } from '../api.ts'
import { ago, change, count, stepLabel, time } from '../format.ts'
import { html } from '../html.ts'
import { Bars, Chart } from '../parts/chart.ts'
import { describeAlert } from '../parts/describe-alert.ts'
import { Copy, Panel } from '../parts/panel.ts'
import { type SpanName, useSpan } from '../parts/span.ts'
import { nameOf, Time } from '../parts/words.ts'
import { hrefOf } from '../place.ts'

const freshMs = 15_000
/** After a first start one waits for the first decision. */
const firstMs = 1_000

/** Until when a chart is whole: its last steps may still grow. */
const wholeSteps = ({ rows, complete_through }: Usage, stepMs: number): number =>
  rows.filter(
    ({ ts }) =>
      ts !== undefined && complete_through !== null && Date.parse(ts) + stepMs <= Date.parse(complete_through),
  ).length

const stepMsOf = (step: string) => ({ minute: 60_000, quarter_hour: 900_000, hour: 3_600_000 })[step] ?? 86_400_000

/** Sums after the last that is counted are null in a filled answer. */
const known = (sum: string | null) => (sum === null ? null : Number(sum))

/** What was allowed and refused over time. */
export function UsageChart({ usage, title }: { readonly usage: Usage; readonly title: string }) {
  const { zone } = useSpan()
  const { rows, step, complete_through: through } = usage
  return html`<${Chart}
    title=${title}
    labels=${rows.map(({ ts = '' }) => stepLabel(ts, step, zone))}
    wholeCount=${wholeSteps(usage, stepMsOf(step))}
    series=${[
      { name: 'allowed', kind: 'allowed', values: rows.map(({ allowed }) => known(allowed)) },
      { name: 'refused', kind: 'refused', values: rows.map(({ denied }) => known(denied)) },
    ]}
    note=${through === null ? 'Nothing was counted yet.' : `Counted until ${time(through, zone)}; what is paler may still grow.`}
  />`
}

function Health({ status }: { readonly status: Status }) {
  const { zone } = useSpan()
  const { complete_through: through, look, warnings } = status
  return html`<div class="stack">
    <div class="figures">
      <span>${through === null ? 'nothing counted yet' : html`counted until <b class="time">${time(through, zone)}</b>, ${ago(Date.parse(through))}`}</span>
      <span class=${`word ${status.redis === null ? 'good' : 'refused'}`}>${status.redis === null ? '● Redis answers' : `✕ ${status.redis}`}</span>
    </div>
    ${look.map((one) => html`<div class="fault" key=${one}>${one}</div>`)}
    ${warnings.map((one) => html`<div class="note" key=${one}>${one}</div>`)}
  </div>`
}

const firstCommands = (origin: string) =>
  `./weir status\ncurl -i http://127.0.0.1:8080/          # a first request, through the proxy\ncurl -H "Authorization: Bearer $TOKEN" '${origin}/v1/usage'`

/** What somebody sees who has just started Weir. */
const FirstStart = () => html`<div class="stack">
  <p>No request was decided in this span yet. Three commands to begin with:</p>
  <pre>${firstCommands(location.origin)}</pre>
  <div><${Copy} text=${firstCommands(location.origin)} label="Copy" /></div>
</div>`

/** The subjects with the most units. */
const MostUnits = ({ rows }: Pick<Usage, 'rows'>) =>
  html`<${Bars}
            bars=${rows.map((row) => ({
              name: row.other === true ? `${count(row.groups)} others` : nameOf(row.subject ?? ''),
              href:
                row.other === true || row.subject === ''
                  ? undefined
                  : hrefOf(`/subjects/${encodeURIComponent(row.subject ?? '')}`),
              value: Number(row.cost),
              aside: change(row.change),
            }))}
          />`

export function Overview() {
  const { from, name, step, label, zone } = useSpan()
  const asked = (params: Record<string, string>) =>
    pathOf('/v1/usage', { from, numbers: 'text', time_zone: zone, ...params })
  const chartPath = asked({ step, fill: 'zero' })
  const topPath = asked({ step: 'total', by: 'subject', top: '8', compare: 'previous' })
  const deniedPath = asked({ step: 'total', by: 'denied_by', outcome: 'deny', order: '-denied', top: '8' })
  const [everyMs, setEveryMs] = useState(freshMs)
  const [status, usage, most, denied, alerts] = [
    useAnswer<Status>('/v1/status', freshMs),
    useAnswer<Usage>(chartPath, everyMs),
    useAnswer<Usage>(topPath, everyMs),
    useAnswer<Usage>(deniedPath, everyMs),
    useAnswer<Page<Alert>>('/v1/alerts?limit=6', freshMs),
  ]
  const isFirst = usage.data?.totals.count === '0'
  useEffect(() => setEveryMs(isFirst ? firstMs : freshMs), [isFirst])
  const nothing = ({ rows }: Usage) => (rows.length === 0 ? 'Nothing in this span.' : undefined)
  return html`
    <h1>Overview</h1>
    <${Panel} title="Is all well?" asked=${status} path="/v1/status" rows=${1}>
      ${(data: Status) => html`<${Health} status=${data} />`}
    <//>
    <div class="grid">
      <${Panel} class="wide" title=${`Decisions, ${label}`} asked=${usage} path=${chartPath} rows=${9} empty=${(data: Usage) => (data.totals.count === '0' ? html`<${FirstStart} />` : undefined)}>
        ${(data: Usage) => html`<div class="stack">
          <div class="figures">
            <span class="figure"><b>${count(data.totals.allowed)}</b>allowed</span>
            <span class="figure"><b>${count(data.totals.denied)}</b>refused</span>
            <span class="figure"><b>${count(data.totals.cost)}</b>units</span>
          </div>
          <${UsageChart} usage=${data} title=${`Decisions, ${label}`} />
        </div>`}
      <//>
      <${Panel} class="third" title="Needs a look" asked=${alerts} path="/v1/alerts?limit=6" empty=${({ items }: Page<Alert>) => (items.length === 0 ? 'No alert was raised.' : undefined)}>
        ${({ items }: Page<Alert>) =>
          html`<div class="stack">
            ${items.map(
              (alert) => html`<div key=${alert.id}>
                <a href=${hrefOf(`/alerts/${alert.id}`)}>${describeAlert(alert)}</a>
                <div class="small quiet"><${Time} at=${alert.time} /></div>
              </div>`,
            )}
          </div>`}
      <//>
      <${Panel} class="half" title="Most units" asked=${most} path=${topPath} empty=${nothing} tools=${html`<a class="small" href=${hrefOf('/usage', { by: 'subject', top: '20' })}>All</a>`}>
        ${({ rows }: Usage) => html`<${MostUnits} rows=${rows} />`}
      <//>
      <${Panel} class="half" title="Refused by limit" asked=${denied} path=${deniedPath} empty=${({ rows }: Usage) => (rows.length === 0 ? 'Nothing was refused.' : undefined)}>
        ${({ rows }: Usage) =>
          html`<${Bars}
            kind="refused"
            bars=${rows.map((row) => ({
              name:
                row.other === true ? `${count(row.groups)} others` : row.denied_by === '' ? 'no limit' : row.denied_by,
              href:
                row.other === true
                  ? undefined
                  : hrefOf('/decisions', {
                      outcome: 'deny',
                      denied_by: row.denied_by ?? '',
                      span: name satisfies SpanName,
                    }),
              value: Number(row.denied),
            }))}
          />`}
      <//>
    </div>
  `
}
