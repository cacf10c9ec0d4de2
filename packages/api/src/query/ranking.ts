import { type Measure, orders, unitOrders } from './columns.ts'

/** How the groups of an answer are ranked. */
export interface Ranking {
  /** A change from nothing comes last. */
  readonly measure: Measure | 'change'
  readonly descending: boolean
  /** Only so many groups, those that come first over the whole span; undefined for all. */
  readonly top: number | undefined
  /** Whether one row sums the groups beyond `top`. */
  readonly other: boolean
}

/**
 * Reads `top`, `order` and `other`. Undefined without the first two: rows are then in order of time and names. `amount`
 * is the sum that `top` ranks by without `order`.
 */
export function readRanking(
  { top, order, other, compare }: Readonly<Record<string, string | undefined>>,
  by: readonly string[],
  problems: string[],
  amount: 'cost' | 'quantity' = 'cost',
): Ranking | undefined {
  const [, minus, name] = /^(-?)(.*)$/.exec(order ?? `-${amount}`) ?? []
  const measure = [...(amount === 'cost' ? orders : unitOrders)].find((one) => one === name)
  if (measure === 'change' && compare === undefined) problems.push('order=change goes with compare')
  const count = top === undefined ? undefined : Number(top)
  if (count !== undefined && by.length === 0) problems.push('top needs by: it takes the largest of some groups')
  if (other !== undefined && count === undefined) problems.push('other goes with top')
  if (measure === undefined || (top === undefined && order === undefined)) return undefined
  return { measure, descending: minus === '-', top: count, other: count !== undefined && other !== 'false' }
}

/** One part of what the rows of an answer are sorted by; parts that descend are negated, so that all ascend. */
export type SortPart =
  | { readonly kind: 'time' }
  | { readonly kind: 'other' }
  | { readonly kind: 'measure'; readonly name: Measure; readonly descending: boolean }
  | { readonly kind: 'change'; readonly descending: boolean }
  | { readonly kind: 'name'; readonly name: string }

/** What of a query decides the order of its rows. */
interface Sorted {
  readonly step: string
  readonly by: readonly string[]
  readonly ranking?: Ranking | undefined
}

/** Returns what the rows of an answer are sorted by: no two rows have the same. */
export function sortKeyOf({ step, by, ranking }: Sorted): readonly SortPart[] {
  const { measure, descending = false, other = false } = ranking ?? {}
  return [
    ...(step === 'total' ? [] : [{ kind: 'time' } as const]),
    ...(other ? [{ kind: 'other' } as const] : []),
    ...(measure === undefined
      ? []
      : [
          measure === 'change'
            ? ({ kind: measure, descending } as const)
            : ({ kind: 'measure', name: measure, descending } as const),
        ]),
    ...by.map((name) => ({ kind: 'name', name }) as const),
  ]
}

/** Returns a row's position in this order, by which the next page begins. */
export const positionOf = (parts: readonly SortPart[], row: Readonly<Record<string, unknown>>): readonly string[] =>
  parts.map((part) => {
    if (part.kind === 'time') return String(Date.parse(String(row.ts)) / 1_000)
    if (part.kind === 'other') return row.other === true ? '1' : '0'
    if (part.kind === 'change')
      return typeof row.change === 'number' ? String(row.change * (part.descending ? -1 : 1)) : 'inf'
    if (part.kind === 'name') return String(row[part.name] ?? '')
    return String(part.descending ? -BigInt(String(row[part.name])) : row[part.name])
  })

const positionForms = {
  time: /^-?\d{1,11}$/,
  other: /^[01]$/,
  measure: /^-?\d{1,38}$/,
  change: /^(inf|-?\d{1,30}(\.\d{1,30})?(e[+-]?\d{1,3})?)$/,
  name: /^/,
}

/** Whether these texts can be a position in this order. */
export const isPosition = (parts: readonly SortPart[], position: readonly string[]): boolean =>
  position.length === parts.length && parts.every(({ kind }, at) => positionForms[kind].test(position[at] ?? ''))
