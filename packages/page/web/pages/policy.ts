import { useEffect, useState } from 'preact/hooks'
import type { Change, ChangeWhole, Entity, Page } from '../answers.ts'
import { ask, type Refusal, send, useAnswer } from '../api.ts'
import { type Children, html } from '../html.ts'
import { Action, typed } from '../parts/dialog.ts'
import { Fault, Panel } from '../parts/panel.ts'
import { type Column, Pages, Table } from '../parts/table.ts'
import { Time } from '../parts/words.ts'
import { hrefOf, setParams, usePlace } from '../place.ts'
import { may } from '../session.ts'

const kinds = ['limits', 'plans', 'routes', 'subjects', 'prices', 'upstreams', 'endpoints', 'watches'] as const

/** Settings on one line, as weir.yaml has them in braces. */
const inline = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .map(
      ([name, one]) =>
        `${name}: ${typeof one === 'object' && one !== null && !Array.isArray(one) ? `{${inline(one)}}` : inline(one)}`,
    )
    .join(', ')
}

/** What is in force, part by part. */
export function PolicyPage() {
  const { params } = usePlace()
  const given = params.get('kind') ?? 'limits'
  const kind = kinds.find((one) => one === given) ?? 'limits'
  const after = params.get('after')
  const path = `/v1/${kind}?limit=50${after === null ? '' : `&after=${encodeURIComponent(after)}`}`
  const columns: readonly Column<Entity>[] = [
    {
      name: 'Name',
      cell: ({ name }) =>
        kind === 'subjects' ? html`<a href=${hrefOf(`/subjects/${encodeURIComponent(name)}`)}>${name}</a>` : name,
    },
    { name: 'Settings', cell: ({ body }) => html`<code>${inline(body)}</code>` },
    { name: 'From', cell: ({ origin }) => (origin === 'file' ? 'the file' : 'this API') },
  ]
  return html`
    <div class="head"><h1>Policy</h1><div class="row"><a class="button" href=${hrefOf('/changes')}>Changes</a><a class="button" href=${hrefOf('/policy/change')}>Change it</a></div></div>
    <nav class="tabs" aria-label="Parts">
      ${kinds.map((one) => html`<a key=${one} href=${hrefOf('/policy', { kind: one })} aria-current=${one === kind ? 'page' : undefined}>${one}</a>`)}
    </nav>
    <${Panel} title=${kind} asked=${useAnswer<Page<Entity>>(path)} path=${path} rows=${8} empty=${({ items }: Page<Entity>) => (items.length === 0 ? `There are no ${kind}.` : undefined)}>
      ${({ items, next }: Page<Entity>) => html`<div class="stack">
        <${Table} caption=${kind} columns=${columns} rows=${items} keyOf=${({ name }: Entity) => name} />
        <${Pages} after=${after} next=${next} onPage=${(page: string | undefined) => setParams({ after: page })} />
      </div>`}
    <//>
  `
}

interface Planned {
  readonly changed: boolean
  readonly created: number
  readonly updated: number
  readonly deleted: number
  readonly changes: readonly {
    readonly action: string
    readonly kind: string
    readonly name: string
    readonly before: object | null
    readonly after: object | null
  }[]
}

const signs: Readonly<Record<string, string>> = { create: '+', update: '~', delete: '−', keep: '=' }

function Plan({ plan }: { readonly plan: Planned }) {
  if (!plan.changed) return html`<p class="empty">Nothing would change.</p>`
  return html`<div class="stack">
    ${plan.changes.map(
      ({ action, kind, name, before, after }) => html`<div key=${`${kind} ${name}`}>
        <b class=${{ create: 'added', delete: 'taken' }[action] ?? ''}>${signs[action] ?? action} ${kind} ${name}</b>
        ${before !== null && html`<div class="small taken"><code>− ${inline(before)}</code></div>`}
        ${after !== null && html`<div class="small added"><code>+ ${inline(after)}</code></div>`}
      </div>`,
    )}
  </div>`
}

/** Problems of a file, each at its line. */
function Problems({ error, onLine }: { readonly error: Refusal; readonly onLine: (line: number) => void }) {
  const list = Array.isArray(error.body.problems)
    ? (error.body.problems as { path: string; message: string; line?: number; column?: number }[])
    : []
  if (list.length === 0) return html`<${Fault} error=${error} />`
  return html`<ul class="fault" role="alert">
    ${list.map(({ path, message, line, column }) => html`<li key=${`${path} ${message}`}>${line === undefined ? '' : html`<button class="bare small" onClick=${() => onLine(line)}>${line}:${column}</button>`} ${path}: ${message}</li>`)}
  </ul>`
}

/** Edits the policy as a file: what would change is shown before it is applied. */
export function PolicyChangePage() {
  const [text, setText] = useState<string>()
  const [base, setBase] = useState<string>()
  const [state, setState] = useState<{ readonly plan?: Planned; readonly error?: Refusal; readonly of?: string }>({})
  const [failed, setFailed] = useState<Refusal>()
  const load = () => {
    setFailed(undefined)
    Promise.all([ask<object>('/v1/policy'), ask<Page<Change>>('/v1/changes?limit=1')]).then(
      ([policy, { items }]) => {
        setText(JSON.stringify(policy, null, 2))
        setBase(items[0]?.id)
      },
      (error: Refusal) => setFailed(error),
    )
  }
  useEffect(load, [])
  useEffect(() => {
    if (text === undefined) return
    const timer = setTimeout(() => {
      send<Planned>('PUT', '/v1/policy?dry_run=true', text).then(
        (plan) => setState({ plan, of: text }),
        (error: Refusal) => setState({ error, of: text }),
      )
    }, 400)
    return () => clearTimeout(timer)
  }, [text])
  const toLine = (line: number) => {
    const area = document.querySelector('textarea')
    const start =
      (text ?? '')
        .split('\n')
        .slice(0, line - 1)
        .join('\n').length + 1
    area?.focus()
    area?.setSelectionRange(start, start)
  }
  const apply = async (): Promise<Children | undefined> => {
    const { items } = await ask<Page<Change>>('/v1/changes?limit=1')
    if (items[0]?.id !== base)
      return html`<p class="fault">${items[0]?.by} has changed the policy meanwhile. Load it again, and make your change on it: nothing was applied.</p>`
    await send('PUT', '/v1/policy', text)
    load()
    return html`<p>Applied. Every ingress has it within a second.</p>`
  }
  const { plan, error, of } = state
  const count = plan === undefined ? 0 : plan.created + plan.updated + plan.deleted
  return html`
    <div class="head"><h1>Change the policy</h1><div class="row">
      <button onClick=${load}>Load again</button>
      <${Action} label=${`Apply ${count} changes`} isDisabled=${!may('write') || count === 0 || of !== text} about=${plan && html`<${Plan} plan=${plan} />`} run=${apply} />
    </div></div>
    ${failed !== undefined && html`<${Fault} error=${failed} again=${load} />`}
    ${!may('admin') && html`<p class="note">Changing the policy here takes a token with the scope admin: others do not see the hashes of keys and tokens, which a whole policy has.</p>`}
    <div class="grid">
      <section class="panel half"><header><h2>The policy, as JSON or YAML</h2><span class="small quiet">${base !== undefined && `based on change ${base.slice(0, 13)}…`}</span></header>
        <textarea aria-label="Policy" rows="32" spellcheck=${false} value=${text ?? ''} onInput=${(event: Event) => setText(typed(event))}></textarea>
      </section>
      <section class="panel half" aria-live="polite"><header><h2>What would change</h2></header>
        ${error !== undefined ? html`<${Problems} error=${error} onLine=${toLine} />` : plan === undefined ? html`<p class="empty">…</p>` : html`<${Plan} plan=${plan} />`}
      </section>
    </div>
  `
}

const wordsOf = ({ what, kind, name }: Change['summary'][number]) =>
  kind === 'policy' ? `applied the file ${name.slice(0, 8)}` : `${what} ${kind} ${name}`

const columns: readonly Column<Change>[] = [
  { name: 'When', cell: ({ id, at }) => html`<a href=${hrefOf(`/changes/${id}`)}><${Time} at=${at} /></a>` },
  { name: 'By', cell: ({ by }) => by },
  {
    name: 'What',
    cell: ({ summary, total }) =>
      `${summary.slice(0, 4).map(wordsOf).join(', ')}${total > 4 ? `, and ${total - 4} more` : ''}`,
  },
]

export function ChangesPage() {
  const { params } = usePlace()
  const after = params.get('after')
  const path = `/v1/changes?limit=50${after === null ? '' : `&after=${encodeURIComponent(after)}`}`
  return html`
    <h1>Changes</h1>
    <${Panel} title="Who changed what" asked=${useAnswer<Page<Change>>(path)} path=${path} rows=${10} empty=${({ items }: Page<Change>) => (items.length === 0 ? 'Nothing was changed yet.' : undefined)}>
      ${({ items, next }: Page<Change>) => html`<div class="stack">
        <${Table} caption="Changes" columns=${columns} rows=${items} keyOf=${({ id }: Change) => id} />
        <${Pages} after=${after} next=${next} onPage=${(page: string | undefined) => setParams({ after: page })} />
      </div>`}
    <//>
  `
}

export function ChangePage({ id }: { readonly id: string }) {
  const path = `/v1/changes/${encodeURIComponent(id)}`
  return html`
    <div><h1>Change</h1><code>${id}</code></div>
    <${Panel} title="From what to what" asked=${useAnswer<ChangeWhole>(path)} path=${path}>
      ${(data: ChangeWhole) => html`<div class="stack">
        <p><b>${data.by}</b>, <${Time} at=${data.at} isLong /></p>
        ${data.entities.map(
          ({ kind, name, before, after }) => html`<div key=${`${kind} ${name}`}>
            <b>${kind} ${name}</b>
            ${before !== null && html`<div class="small taken"><code>− ${inline(before)}</code></div>`}
            ${after !== null && html`<div class="small added"><code>+ ${inline(after)}</code></div>`}
          </div>`,
        )}
        ${data.entities.length === 0 && html`<p class="quiet">${data.summary.map(wordsOf).join(', ')}</p>`}
      </div>`}
    <//>
  `
}
