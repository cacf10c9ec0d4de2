import { pathOf, useAnswer } from '../api.ts'
import { html } from '../html.ts'
import { setParams } from '../location.ts'
import { Field } from './field.ts'
import { useSpan } from './span.ts'

const dimensions = ['outcome', 'subject', 'route', 'denied_by', 'key_id', 'plan', 'method', 'reason', 'ip'] as const
const groupings: Readonly<Record<string, string>> = {
  subject: 'by subject',
  route: 'by route',
  denied_by: 'by limit',
  key_id: 'by key',
  plan: 'by plan',
  method: 'by method',
  outcome: 'by outcome',
  reason: 'by reason',
  ip: 'by address',
  'subject,route': 'by subject and route',
  'subject,denied_by': 'by subject and limit',
  'subject,key_id': 'by subject and key',
}
/** The columns of usage by unit, besides labels. */
const unitDimensions = ['subject', 'route', 'key_id', 'plan', 'meter', 'basis'] as const

/** Whose usage: of a subject, or of it and all below it; of everybody where neither is named. */
export interface Whose {
  readonly subject?: string
  readonly within?: string
}

/** Names of units or of labels in the chosen span; the most frequent first. */
function useNames(column: 'unit' | 'dimension' | undefined, whose: Whose): readonly string[] {
  const { range, zone } = useSpan()
  const path = column && pathOf(`/v1/dimensions/${column}`, { ...range, time_zone: zone, ...whose })
  const { data } = useAnswer<{ readonly items: readonly { readonly value: string }[] }>(path)
  return data?.items.map(({ value }) => value) ?? []
}

/** What usage is filtered by and grouped by; usage by unit also by its labels, and by those that the address names. */
export function useColumns(unit: string, asked: readonly string[], whose: Whose = {}) {
  const found = useNames(unit === '' ? undefined : 'dimension', whose)
  if (unit === '') return { names: dimensions, groups: groupings }
  const known = [...found.map((name) => (name === 'model' ? name : `dimension.${name}`)), ...asked]
  const labels = [...new Set(known.filter((name) => name === 'model' || name.startsWith('dimension.')))]
  const names = [...unitDimensions, ...labels]
  const common = Object.entries(groupings).filter(([by]) => by.split(',').every((one) => names.includes(one)))
  const words = (name: string) => name.replace('dimension.', '')
  const own = ['meter', 'basis', ...labels].map((name) => [name, `by ${words(name)}`])
  const divided = labels.map((name) => [`subject,${name}`, `by subject and ${words(name)}`])
  return { names, groups: Object.fromEntries([...common, ...own, ...divided]) as typeof groupings }
}

/** The step of a chart: units are summed by quarter hour. */
export const stepOf = (unit: string, step: string) => (unit !== '' && step === 'minute' ? 'quarter_hour' : step)

/** Chooses what is measured: one of `names`, or a unit that the chosen span has; nothing where there is no choice. */
export function MeasureField(props: {
  readonly names: Readonly<Record<string, string>>
  readonly measure: string
  readonly unit: string
  readonly by: string
  readonly whose?: Whose
}) {
  const { names, measure, unit, by, whose = {} } = props
  const units = [...new Set([...useNames('unit', whose), ...(unit === '' ? [] : [unit])])]
  const options = { ...names, ...Object.fromEntries(units.map((one) => [`unit ${one}`, one])) }
  const set = (value: string) => {
    const [, one = ''] = /^unit (.*)$/.exec(value) ?? []
    setParams({ measure: one === '' ? value : '', unit: one, order: '', by: (one === '') === (unit === '') ? by : '' })
  }
  if (Object.keys(options).length === 1) return ''
  return html`<${Field} isTool label="Measure" options=${options} value=${unit === '' ? measure : `unit ${unit}`} onValue=${set} />`
}
