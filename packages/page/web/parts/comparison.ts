import { dateOf } from '@weir/core/format.ts'
import { addMonths, daysAfter, daysText, isDate, monthOf, type Span } from './span-range.ts'

/** The earlier spans that one is compared with. */
export const comparisons = {
  '': 'no comparison',
  previous: 'previous period',
  month: 'same days last month',
  year: 'same days last year',
} as const
type Name = Exclude<keyof typeof comparisons, ''>

/** An earlier span, as long as the chosen one is so far. */
export interface Comparison {
  /** As the API takes it: when the span begins. */
  readonly compare: string
  readonly range: { readonly from: string; readonly to: string }
  /** Its days: `1 – 27 Oct`. */
  readonly label: string
}

const isName = (name: string | null): name is Name => name !== null && name !== '' && Object.hasOwn(comparisons, name)

/** When the compared span begins: a day as a day, so that the API counts by the calendar of the zone. */
function beginOf(name: Name, { range: { from }, name: spanName, ms, isWholeMonth }: Span, fromMs: number): string {
  const begin = isDate(from) ? from : new Date(fromMs).toISOString()
  if (name === 'year') return addMonths(begin, -12)
  if (name === 'month' || spanName === 'month' || isWholeMonth) return addMonths(begin, -1)
  return isDate(from) ? daysAfter(from, -Math.round(ms / 86_400_000)) : new Date(fromMs - ms).toISOString()
}

/** The span that the address compares the chosen one with; undefined for none. A running span is compared so far. */
export function comparisonOf(params: URLSearchParams, span: Span, nowMs: number): Comparison | undefined {
  const name = params.get('compare')
  if (!isName(name)) return undefined
  const { range, zone, ms, isWholeMonth } = span
  const isRolling = range.from.startsWith('now-')
  const fromMs = isRolling ? nowMs - ms : Date.parse(range.from)
  const from = beginOf(name, span, fromMs)
  const endMs = Math.min(range.to === undefined ? nowMs : Date.parse(range.to), nowMs)
  const to =
    isWholeMonth && endMs < nowMs ? monthOf(from, 1) : new Date(Date.parse(from) + endMs - fromMs).toISOString()
  const day = (text: string, ms: number) => dateOf(Date.parse(text) - ms, isDate(range.from) ? 'UTC' : zone)
  const label = daysText(day(from, 0), day(to, 1))
  if (name === 'previous' && isRolling) {
    const [, length = '', unit = ''] = /^now-(\d+)(\w)$/.exec(range.from) ?? []
    return { compare: name, range: { from: `now-${2 * Number(length)}${unit}`, to: range.from }, label }
  }
  return { compare: from, range: { from, to }, label }
}
