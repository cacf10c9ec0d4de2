import type { Entity } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { useLocation } from '../location.ts'
import { inline } from '../parts/settings.ts'
import { type Column, ListPanel } from '../parts/table.ts'
import { Parts, Tabs } from '../parts/tabs.ts'
import { Part, Subject } from '../parts/words.ts'
import { PolicyPart } from './policy-part.ts'

export const policyTabs = { '/policy': 'Current', '/policy/change': 'Edit', '/changes': 'History' }

const kinds = {
  limits: 'Limits',
  plans: 'Plans',
  routes: 'Routes',
  subjects: 'Subjects',
  prices: 'Prices',
  upstreams: 'Upstreams',
  endpoints: 'Endpoints',
  watches: 'Watches',
  refusals: 'Refusals',
  unsubscribed: 'Unsubscribed',
}

/** The parts of a kind. */
function PartList({ kind }: { readonly kind: keyof typeof kinds }) {
  const { params } = useLocation()
  const path = pathOf(`/v1/${kind}`, { limit: '50', after: params.get('after') ?? '' })
  const columns: readonly Column<Entity>[] = [
    {
      name: 'Name',
      isPlain: true,
      cell: ({ name }) =>
        kind === 'subjects' ? html`<${Subject} id=${name} />` : html`<b><${Part} kind=${kind} name=${name} /></b>`,
    },
    {
      name: 'From',
      isPlain: true,
      cell: ({ origin }) => html`<span class="quiet">${origin === 'file' ? 'file' : 'API'}</span>`,
    },
    { name: 'Settings', isPlain: true, cell: ({ body }) => html`<code>${inline(body)}</code>` },
  ]
  return html`<${ListPanel} title=${kinds[kind]} asked=${useAnswer<Page<Entity>>(path)} path=${path} rows=${14} none=${`No ${kind}.`} caption=${kind} columns=${columns} keyOf=${({ name }: Entity) => name} />`
}

/** What is in force, part by part. */
export function PolicyPage() {
  const { params } = useLocation()
  const given = params.get('kind') ?? 'limits'
  const kind = Object.hasOwn(kinds, given) ? given : 'limits'
  const name = params.get('name')
  return html`
    <div class="head"><h1>Policy</h1></div>
    <${Tabs} of=${policyTabs} label="Policy" />
    <${Parts} of=${kinds} label="Parts" param="kind" isSub />
    ${name === null ? html`<${PartList} kind=${kind} key=${kind} />` : html`<${PolicyPart} kind=${kind} name=${name} key=${`${kind} ${name}`} />`}
  `
}
