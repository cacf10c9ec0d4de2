import type { Applied, Change, ListedChange } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import { counted } from '@weir/core/format.ts'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ask, askPolicy, Refusal, send } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { describeChange } from '../parts/change-words.ts'
import { Action } from '../parts/dialog.ts'
import { Editor, type Problem } from '../parts/editor.ts'
import { ImpactPanel } from '../parts/impact.ts'
import { Fault } from '../parts/panel.ts'
import { Differences } from '../parts/settings.ts'
import { Tabs } from '../parts/tabs.ts'
import { Time } from '../parts/words.ts'
import { may } from '../session.ts'
import { policyTabs } from './policy.ts'

const problemsOf = ({ body }: Refusal): readonly Problem[] =>
  Array.isArray(body.problems) ? (body.problems as Problem[]) : []

function Plan({ plan }: { readonly plan: Applied }) {
  if (!plan.changed) return html`<p class="empty">No changes.</p>`
  return html`<div class="stack"><${Differences} of=${plan.changes} /></div>`
}

/** What others have changed since the text was loaded, beside what is about to be applied. */
function Overtaken(props: {
  readonly since: readonly Change[]
  readonly onLoad: () => void
  readonly onKeep: () => void
}) {
  const { since, onLoad, onKeep } = props
  const last = since[0]
  return html`<div class="fault stack" role="alert">
    <p><b>${last?.by} changed the policy in the meantime</b>${last !== undefined && html`, <${Time} at=${last.at} />`}. Your changes were not applied. Theirs:</p>
    ${since.map(
      (change) => html`<div class="stack" key=${change.id}>
      <${Differences} of=${change.entities} />
      ${change.entities.length === 0 && html`<a href=${hrefOf(`/changes/${change.id}`)}>${describeChange(change)}</a>`}
    </div>`,
    )}
    <div class="row"><button onClick=${onLoad}>Discard my changes</button><button onClick=${onKeep}>Keep mine, overwrite theirs</button></div>
  </div>`
}

/** The changes behind one, newest first; a page of them is more than anybody reads. */
async function changesSince(base: string | undefined): Promise<readonly Change[]> {
  const { items } = await ask<Page<ListedChange>>('/v1/changes?limit=20')
  const at = items.findIndex(({ id }) => id === base)
  const wholeOf = (one: ListedChange) =>
    ask<Change>(`/v1/changes/${one.id}`).catch((): Change => ({ ...one, entities: [] }))
  return Promise.all(items.slice(0, at < 0 ? items.length : at).map(wholeOf))
}

/** An edit of the whole policy, and no file: each part stays whose it is. */
const asEdit = { 'Weir-Origin': 'admin' }

function usePolicyText() {
  /** The newest change that the text has. */
  const [base, setBase] = useState<string>()
  const [text, setText] = useState<string>()
  const [failed, setFailed] = useState<Refusal>()
  const load = () => {
    setFailed(undefined)
    askPolicy().then(
      ({ text: policy, etag }) => {
        setBase(etag.replaceAll('"', ''))
        setText(policy)
      },
      (error: Refusal) => setFailed(error),
    )
  }
  useEffect(load, [])
  return { base, setBase, text, setText, failed, load }
}

/** How long somebody has stopped typing before the console is asked what would change. */
const restMs = 400

function usePlan(text: string | undefined) {
  const [state, setState] = useState<{ readonly plan?: Applied; readonly error?: Refusal; readonly of?: string }>({})
  useEffect(() => {
    if (text === undefined || text === '') return
    const timer = setTimeout(() => {
      send<Applied>('PUT', '/v1/policy?dry_run=true', text, asEdit).then(
        (plan) => setState({ plan, of: text }),
        (error: Refusal) => setState({ error, of: text }),
      )
    }, restMs)
    return () => clearTimeout(timer)
  }, [text])
  return state
}

/** Edits the policy as a file: what would change is shown before it is applied. */
export function PolicyChangePage() {
  const { base, setBase, text, setText, failed, load } = usePolicyText()
  const { plan, error, of } = usePlan(text)
  const [since, setSince] = useState<readonly Change[]>([])
  const area = useRef<HTMLTextAreaElement>(null)
  const loadTheirs = () => {
    setSince([])
    load()
  }
  const keepMine = () => {
    setBase(since[0]?.id)
    setSince([])
  }
  /** Whether it was applied. */
  const apply = async (): Promise<boolean> => {
    try {
      await send('PUT', '/v1/policy', text, { ...asEdit, 'If-Match': `"${base}"` })
    } catch (refusal) {
      if (!(refusal instanceof Refusal && refusal.status === 412)) throw refusal
      setSince(await changesSince(base))
      return false
    }
    load()
    return true
  }
  const said = (isApplied: boolean) =>
    isApplied ? html`<p>Applied. Every ingress applies it within a second.</p>` : undefined
  const count = plan === undefined ? 0 : plan.created + plan.updated + plan.deleted
  const ended = plan?.changes.find(({ action, kind }) => action === 'delete' && (kind === 'key' || kind === 'subject'))
  const problems = error === undefined ? [] : problemsOf(error)
  return html`
    <div class="head"><h1>Edit policy</h1><div class="row">
      <button onClick=${loadTheirs}>Reload</button>
      <${Action} label=${count === 0 ? 'Apply' : `Apply ${counted(count, 'change')}`} scope="write" isDisabled=${count === 0 || of !== text} about=${plan && html`<${Plan} plan=${plan} />`} run=${apply} said=${said} confirm=${ended?.name} />
    </div></div>
    <${Tabs} of=${policyTabs} label="Policy" />
    ${failed !== undefined && html`<${Fault} error=${failed} again=${load} />`}
    ${since.length > 0 && html`<${Overtaken} since=${since} onLoad=${loadTheirs} onKeep=${keepMine} />`}
    ${!may('admin') && html`<p class="note">Editing the policy requires a token with the scope admin, because the file contains hashes of keys and tokens.</p>`}
    <div class="grid">
      <section class="panel half" aria-label="weir.yaml"><header><h2>weir.yaml</h2><span class="small quiet">${base !== undefined && html`based on <a href=${hrefOf(`/changes/${base}`)}>change ${base.slice(0, 13)}…</a>`}</span></header>
        <${Editor} label="Policy" area=${area} text=${text ?? ''} onText=${setText} problems=${problems} />
      </section>
      <div class="half stack">
      <section class="panel" aria-live="polite" aria-label="Diff"><header><h2>Diff</h2><span class="small quiet">${plan !== undefined && error === undefined && counted(count, 'change')}</span></header>
        ${error !== undefined ? (problems.length === 0 ? html`<${Fault} error=${error} />` : html`<${ProblemList} problems=${problems} area=${area} />`) : plan === undefined ? html`<p class="empty">…</p>` : html`<${Plan} plan=${plan} />`}
      </section>
      ${count > 0 && of !== undefined && may('usage') && html`<${ImpactPanel} text=${of} />`}
      </div>
    </div>
  `
}

/** Problems of a file: each leads to its line. */
function ProblemList(props: {
  readonly problems: readonly Problem[]
  readonly area: { readonly current: HTMLTextAreaElement | null }
}) {
  const { problems, area } = props
  const toLine = (line: number) => {
    const field = area.current
    if (field === null) return
    const lines = field.value.split('\n')
    const start = lines.slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0)
    field.focus()
    field.setSelectionRange(start, start + (lines[line - 1] ?? '').length)
    field.scrollTop = (field.scrollHeight / lines.length) * Math.max(0, line - 5)
  }
  return html`<ul class="fault problems" role="alert">
    ${problems.map(({ path, message, line, column }) => html`<li key=${`${path} ${message}`}>${line !== undefined && html`<button class="bare small" onClick=${() => toLine(line)}>${line}:${column}</button>`} <b>${path}</b> ${message}</li>`)}
  </ul>`
}
