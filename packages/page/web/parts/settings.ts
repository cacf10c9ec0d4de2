import { html } from '../html.ts'

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Settings on one line, as weir.yaml has them in braces. */
export const inline = (value: unknown): string => {
  if (Array.isArray(value))
    return `[${value.map((one) => (isObject(one) ? `{ ${inline(one)} }` : inline(one))).join(', ')}]`
  if (!isObject(value)) return String(value)
  return Object.entries(value)
    .map(([name, one]) => `${name}: ${isObject(one) ? `{ ${inline(one)} }` : inline(one)}`)
    .join(', ')
}

/** One part of the policy, before and after. */
export interface Difference {
  readonly kind: string
  readonly name: string
  readonly before: object | null
  readonly after: object | null
}

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

/** What is another, setting by setting; a new or an ended part in full. */
export function DifferenceLines({ kind, name, before, after }: Difference) {
  const [one, two] = [before as Settings | null, after as Settings | null]
  const isBoth = one !== null && two !== null
  const [old, now] = isBoth ? [differing(one, two), differing(two, one)] : [one, two]
  const isShown = (settings: Settings | null): settings is Settings =>
    settings !== null && Object.keys(settings).length > 0
  return html`<div class="difference">
    <b class=${one === null ? 'added' : two === null ? 'taken' : ''}>${one === null ? '+' : two === null ? '−' : '~'} ${kind} ${name}</b>
    ${isShown(old) && html`<code class="taken">− ${inline(old)}</code>`}
    ${isShown(now) && html`<code class="added">+ ${inline(now)}</code>`}
  </div>`
}
