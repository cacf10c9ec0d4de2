import type { Entity } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import { count, counted } from '@weir/core/format.ts'
import { ask, askSettings, send } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf } from '../location.ts'
import { Action } from './dialog.ts'
import { Copy } from './panel.ts'
import type { PartProps } from './part-form.ts'

interface ApplyProps extends Pick<PartProps, 'name' | 'settings' | 'again'> {
  readonly size: number
  /** Whose refusals would change. */
  readonly subjects: readonly string[]
}

const said = () => html`<p>Applied within a second. <a href=${hrefOf('/changes')}>History</a></p>`

/** Adds a limit wherever another one stands: in plans and routes. */
async function addBeside(name: string, added: string): Promise<void> {
  for (const kind of ['plans', 'routes'] as const) {
    const { items } = await ask<Page<Entity>>(`/v1/${kind}?limit=1000`)
    for (const one of items) {
      const limits = one.body.limits
      if (!Array.isArray(limits) || !limits.includes(name) || limits.includes(added)) continue
      const path = `/v1/${kind}/${encodeURIComponent(one.name)}`
      await send('PUT', path, { ...one.body, limits: [...limits, added] }, { 'If-Match': one.etag })
    }
  }
}

/** The ways to put a size into force. */
export function ApplySize({ name, settings: { body, etag }, size, subjects, again }: ApplyProps) {
  const path = `/v1/limits/${encodeURIComponent(name)}`
  const isSame = size === body.size
  const shadow = `${name}-${size}`.slice(0, 64)
  const apply = () => send('PUT', path, { ...body, size }, { 'If-Match': etag })
  const inShadow = async () => {
    const { block: _, onExceed: __, ...rest } = body
    await send('PUT', `/v1/limits/${encodeURIComponent(shadow)}`, { ...rest, size, mode: 'shadow' })
    await addBeside(name, shadow)
  }
  const onlyFor = async () => {
    for (const id of subjects) {
      const own = `/v1/subjects/${encodeURIComponent(id)}`
      const { body: now, etag: tag } = await askSettings(own)
      const limits = { ...Object(now.limits), [name]: { ...Object(now.limits)?.[name], size } }
      await send('PUT', own, { ...now, limits }, { 'If-Match': tag })
    }
  }
  const yaml = `limits:\n  ${name}: ${JSON.stringify({ ...body, size })}\n`
  return html`
    <${Action} label=${`Apply ${count(size)}`} scope="write" isDisabled=${isSame} about=${html`<p>Changes the size of ${name} from ${count(Number(body.size))} to ${count(size)} for every customer without an override. Counts are kept.</p>`} run=${apply} said=${said} again=${again} />
    <${Action} label="Apply in shadow" scope="write" isDisabled=${isSame} about=${html`<p>Adds the shadow limit ${shadow} next to ${name}. It reports the requests it would refuse but refuses none.</p>`} run=${inShadow} said=${said} again=${again} />
    <${Action} label="Apply to these" scope="write" isDisabled=${isSame || subjects.length === 0} about=${html`<p>Overrides the size with ${count(size)} for ${counted(subjects.length, 'customer')}: ${subjects.join(', ')}.</p>`} run=${onlyFor} said=${said} again=${again} />
    <${Copy} text=${yaml} label="Copy YAML" kind="" />
  `
}
