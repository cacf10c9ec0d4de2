import { useEffect } from 'preact/hooks'
import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { hrefOf, replace, useLocation } from '../location.ts'
import { Panel } from '../parts/panel.ts'
import { type Column, Table } from '../parts/table.ts'

/** What has a name. */
interface Found {
  readonly kind: string
  readonly name: string
}

/** Pages of what has an id. */
const idPages: Readonly<Record<string, string>> = {
  subject: 'subjects',
  decision: 'decisions',
  alert: 'alerts',
  change: 'changes',
}

function hrefOfFound({ kind, name }: Found): string {
  const page = idPages[kind]
  if (page !== undefined) return hrefOf(`/${page}/${encodeURIComponent(name)}`)
  if (kind === 'key') return hrefOf('/decisions', { key_id: name })
  return hrefOf('/policy', { kind: kind === 'watch' ? 'watches' : kind.replace(/(?<!d)$/, 's'), name })
}

/** What stands where a kind leads to something else than its name. */
const leadsTo: Readonly<Record<string, string>> = { key: 'its decisions' }

const columns: readonly Column<Found>[] = [
  { name: 'What', isPlain: true, cell: ({ kind }) => kind },
  { name: 'Name', isPlain: true, cell: (one) => html`<a href=${hrefOfFound(one)}>${one.name}</a>` },
  { name: 'Opens', isPlain: true, cell: ({ kind }) => leadsTo[kind] ?? (kind in idPages ? '' : 'its settings') },
]

/** Everything of one name. Of a single thing it is the way there. */
export function SearchPage() {
  const q = useLocation().params.get('q') ?? ''
  const path = q === '' ? undefined : pathOf('/v1/search', { q })
  const asked = useAnswer<{ readonly items: readonly Found[] }>(path)
  const items = asked.data?.items ?? []
  const [only] = items
  useEffect(() => {
    if (only !== undefined && items.length === 1) replace(hrefOfFound(only))
  }, [only])
  const empty = ({ items: found }: { readonly items: readonly Found[] }) =>
    found.length === 0
      ? html`<p>No exact match for <b>${q}</b>.</p>
        <p>Searched: subjects, keys, endpoints, the policy, and ids of decisions, alerts and changes. <a href=${hrefOf('/subjects', { subject_prefix: q })}>Subjects starting with ${q}</a></p>`
      : undefined
  if (path === undefined) return html`<h1>Search</h1><p>Finds names, ids and addresses.</p>`
  return html`
    <h1>Search</h1>
    <${Panel} title=${`Results for ${q}`} asked=${asked} path=${path} empty=${empty}>
      ${() => html`<${Table} caption="Results" columns=${columns} rows=${items} keyOf=${({ kind }: Found) => kind} />`}
    <//>
  `
}
