import { useState } from 'preact/hooks'
import { html } from '../html.ts'
import { go, useLocation } from '../location.ts'
import { Field } from './field.ts'
import { valueName } from './words.ts'

/** What the columns of decisions and usage are called. */
export const columnNames: Readonly<Record<string, string>> = {
  subject: 'Subject',
  route: 'Route',
  plan: 'Plan',
  key_id: 'Key',
  method: 'Method',
  outcome: 'Outcome',
  denied_by: 'Limit',
  ip: 'Address',
  reason: 'Reason',
  status: 'Status',
  limit: 'Limit',
  type: 'Type',
  basis: 'Basis',
  meter: 'Meter',
  model: 'Model',
}
/** What a column is called; a label by its own name. */
export const columnName = (name: string) => columnNames[name] ?? name.replace('dimension.', '')
const outcomes = { '': 'allowed and refused', allow: 'allowed', deny: 'refused' }
/** Columns whose values the API suggests. */
const suggested = ['subject', 'route', 'plan', 'key_id', 'method', 'denied_by', 'basis', 'meter', 'model']

/** Filters of the address: each given several times is any of the values. */
export const filtersOf = (params: URLSearchParams, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, params.getAll(name)]))

const change = (params: URLSearchParams, path: string, name: string, values: readonly string[]): string => {
  const all = new URLSearchParams(params)
  all.delete(name)
  all.delete('after')
  for (const one of values) all.append(name, one)
  return all.size === 0 ? path : `${path}?${all}`
}

/** A value that a click makes the only one of its column that is listed. */
export function Facet({
  name,
  value,
  text = value,
}: {
  readonly name: string
  readonly value: string
  readonly text?: string
}) {
  const { path, params } = useLocation()
  return value === ''
    ? ''
    : html`<a class="facet" title=${`Filter: ${columnName(name).toLowerCase()} ${text}`} href=${change(params, path, name, [value])}>${text}</a>`
}

/** The filters of a list, all in the address, with suggestions of what there is. */
export function Filters({ names }: { readonly names: readonly string[] }) {
  const { path, params } = useLocation()
  const others = names.filter((name) => name !== 'outcome')
  const [name, setName] = useState(others[0] ?? '')
  const [value, setValue] = useState('')
  const set = names.flatMap((one) => params.getAll(one).map((text) => ({ name: one, text })))
  const chips = set.filter((one) => one.name !== 'outcome')
  const add = (event: Event) => {
    event.preventDefault()
    const given = value.trim()
    if (given !== '') go(change(params, path, name, [...params.getAll(name).filter((one) => one !== given), given]))
    setValue('')
  }
  return html`<details class="filters" open=${innerWidth >= 900}>
    <summary>Filters${set.length > 0 ? ` (${set.length})` : ''}</summary>
    <div class="row">
      ${
        names.includes('outcome') &&
        html`<${Field} isTool label="Outcome" options=${outcomes} value=${params.get('outcome') ?? ''} onValue=${(one: string) => go(change(params, path, 'outcome', one === '' ? [] : [one]))} />`
      }
      <form class="row joined" onSubmit=${add}>
        <${Field} isTool label="Filter by" options=${Object.fromEntries(others.map((one) => [one, columnName(one)]))} value=${name} onValue=${setName} />
        <${Field} isTool label=${`${columnName(name)} is`} placeholder="is exactly…" suggest=${suggested.includes(name) || name.startsWith('dimension.') ? name : undefined} value=${value} onValue=${setValue} />
        <button type="submit">Add</button>
      </form>
      ${chips.map(
        (one) =>
          html`<a key=${`${one.name} ${one.text}`} class="button chip" title="Remove filter" href=${change(
            params,
            path,
            one.name,
            params.getAll(one.name).filter((text) => text !== one.text),
          )}>${columnName(one.name)}: <b>${valueName(one.name, one.text)}</b> ✕</a>`,
      )}
    </div>
  </details>`
}
