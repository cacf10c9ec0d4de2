import { useState } from 'preact/hooks'
import { askSettings, Refusal, type Settings, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { go, hrefOf } from '../location.ts'
import { Action } from '../parts/dialog.ts'
import { typed } from '../parts/field.ts'
import { Panel } from '../parts/panel.ts'
import { inline } from '../parts/settings.ts'
import { Subject } from '../parts/words.ts'

function parsed(text: string): object {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Refusal(400, { detail: `The settings are no JSON: ${(error as Error).message}.` })
  }
}

interface ChangeProps {
  readonly path: string
  readonly kind: string
  readonly name: string
  readonly settings: Settings
  /** Once it is done. */
  readonly again: () => void
}

/** Changes one part. An edit of somebody else in between is not overwritten: the API refuses the second. */
function Change({ path, name, settings: { body, etag }, again }: ChangeProps) {
  const [text, setText] = useState<string>()
  const given = text ?? JSON.stringify(body, undefined, 2)
  const run = async () => {
    await send('PUT', path, parsed(given), { 'If-Match': etag })
    setText(undefined)
  }
  const said = () =>
    html`<p>Every ingress has it within a second. <a href=${hrefOf('/changes')}>The audit</a> says who changed it.</p>`
  const about = html`
    <p>What else it would change, and whom it would have refused, says <a href=${hrefOf('/policy/change')}>the whole policy</a>.</p>
    <label class="field">Settings of ${name}, as JSON<textarea rows="12" spellcheck=${false} value=${given} onInput=${(event: Event) => setText(typed(event))}></textarea></label>`
  return html`<${Action} label="Change" scope="write" about=${about} run=${run} said=${said} again=${again} />`
}

function Delete({ path, kind, name, settings: { etag }, again }: ChangeProps) {
  const run = () => send('DELETE', path, undefined, { 'If-Match': etag })
  const about = html`<p>${name}${kind === 'subjects' && ' and its keys'} will be gone within a second, everywhere. A part that others still name stays.</p>`
  return html`<${Action} label="Delete" isDanger scope="write" about=${about} run=${run} again=${again} confirm=${name} />`
}

/** One part of the policy: its settings, to be read, changed and deleted. */
export function PolicyPart({ kind, name }: { readonly kind: string; readonly name: string }) {
  const path = `/v1/${kind}/${encodeURIComponent(name)}`
  const asked = useAnswer(path, undefined, askSettings)
  const { data, again } = asked
  const part = { path, kind, name, settings: data }
  const leave = () => go(hrefOf('/policy', { kind }))
  const tools =
    data !== undefined && html`<${Change} ...${part} again=${again} /><${Delete} ...${part} again=${leave} />`
  return html`<${Panel} title=${name} asked=${asked} path=${path} rows=${6} tools=${tools}>
    ${({ body }: Settings) => html`<dl class="facts">
      ${kind === 'subjects' && html`<dt>Subject</dt><dd><${Subject} id=${name} /></dd>`}
      ${kind === 'endpoints' && html`<dt>Alerts</dt><dd><a href=${hrefOf('/alerts', { endpoint: name })}>its deliveries</a></dd>`}
      ${Object.entries(body).map(([setting, value]) => html`<dt key=${setting}>${setting}</dt><dd><code>${inline(value)}</code></dd>`)}
      ${Object.keys(body).length === 0 && html`<dt>Settings</dt><dd class="quiet">none: the defaults are in force</dd>`}
    </dl>`}
  <//>`
}
