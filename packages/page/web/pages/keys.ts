import { html } from '../html.ts'
import { setParams, useLocation } from '../location.ts'
import { Field } from '../parts/field.ts'
import { KeyList } from '../parts/key-list.ts'
import { Tabs } from '../parts/tabs.ts'

export const credentialTabs = { '/keys': 'Subject keys', '/tokens': 'API tokens' }

/** The keys of all subjects. New ones are made on a subject's page. */
export function KeysPage() {
  const subject = useLocation().params.get('subject') ?? ''
  return html`
    <div class="head"><h1>Keys</h1><${Field} isTool label="Subject" on="change" suggest="subject" value=${subject} onValue=${(one: string) => setParams({ subject: one, after: undefined })} /></div>
    <${Tabs} of=${credentialTabs} label="Credentials" />
    <${KeyList} subject=${subject} />
    ${subject === '' && html`<p class="quiet">Create keys on a subject’s page.</p>`}
  `
}
