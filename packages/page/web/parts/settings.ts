import type { Change } from '@weir/api/policy.ts'
import { html } from '../html.ts'

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Settings on one line, as weir.yaml has them in braces. */
export function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inBraces).join(', ')}]`
  if (!isObject(value)) return String(value)
  const settings = Object.entries(value).map(([name, one]) => `${name}: ${inBraces(one)}`)
  return settings.join(', ')
}

const inBraces = (value: unknown) => (isObject(value) ? `{ ${inline(value)} }` : inline(value))

/** One part of the policy, before and after. */
type Difference = Change['entities'][number]

type Settings = Readonly<Record<string, unknown>>

/** The settings of one that differ from the other's, and of those within them no others either. */
const differing = (one: object, other: Settings): Settings =>
  Object.fromEntries(
    Object.entries(one).flatMap(([name, value]) => {
      const its = other[name]
      if (JSON.stringify(value) === JSON.stringify(its)) return []
      if (!isObject(value) || !isObject(its)) return [[name, value]]
      const within = differing(value, its as Settings)
      return Object.keys(within).length === 0 ? [] : [[name, within]]
    }),
  )

function DifferenceLines({ kind, name, before, after }: Difference) {
  const isBoth = before !== null && after !== null
  const [old, now] = isBoth ? [differing(before, after), differing(after, before)] : [before, after]
  const isShown = (settings: Settings | null): settings is Settings =>
    settings !== null && Object.keys(settings).length > 0
  return html`<div class="difference">
    <b class=${before === null ? 'added' : after === null ? 'taken' : ''}>${before === null ? '+' : after === null ? '−' : '~'} ${kind} ${name}</b>
    ${isShown(old) && html`<code class="taken">− ${inline(old)}</code>`}
    ${isShown(now) && html`<code class="added">+ ${inline(now)}</code>`}
  </div>`
}

/** What is another, setting by setting; a new or an ended part in full. */
export const Differences = ({ of }: { readonly of: readonly Difference[] }) =>
  html`${of.map((one) => html`<${DifferenceLines} key=${`${one.kind} ${one.name}`} ...${one} />`)}`
