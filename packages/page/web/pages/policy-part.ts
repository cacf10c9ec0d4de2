import { askSettings, type Settings, send, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { go, hrefOf } from '../location.ts'
import { Action } from '../parts/dialog.ts'
import { LimitLine } from '../parts/limit-line.ts'
import { Panel } from '../parts/panel.ts'
import { PartForm, type PartProps } from '../parts/part-form.ts'
import { inline } from '../parts/settings.ts'
import { Subject } from '../parts/words.ts'

function Delete({ path, kind, name, settings: { etag }, again }: PartProps) {
  const run = () => send('DELETE', path, undefined, { 'If-Match': etag })
  const about = html`<p>Deletes ${name}${kind === 'subjects' && ' and its keys'} within a second. Remove it from plans and routes first.</p>`
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
    data !== undefined && html`<${PartForm} ...${part} again=${again} /><${Delete} ...${part} again=${leave} />`
  const hasLine = kind === 'limits' && data !== undefined && typeof data.body.size === 'number'
  return html`${hasLine && html`<${LimitLine} name=${name} settings=${data} again=${again} />`}<${Panel} title=${name} asked=${asked} path=${path} rows=${6} tools=${tools}>
    ${({ body }: Settings) => html`<dl class="facts">
      ${kind === 'subjects' && html`<dt>Subject</dt><dd><${Subject} id=${name} /></dd>`}
      ${kind === 'endpoints' && html`<dt>Alerts</dt><dd><a href=${hrefOf('/alerts', { endpoint: name })}>deliveries</a></dd>`}
      ${Object.entries(body).map(([setting, value]) => html`<dt key=${setting}>${setting}</dt><dd><code>${inline(value)}</code></dd>`)}
      ${Object.keys(body).length === 0 && html`<dt>Settings</dt><dd class="quiet">none (defaults)</dd>`}
    </dl>`}
  <//>`
}
