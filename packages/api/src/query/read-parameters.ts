import { parseTimeZone } from '@weir/core/calendar/time-zone.ts'
import { didYouMean } from '@weir/core/suggest.ts'
import { Temporal } from 'temporal-polyfill'
import type { TProperties } from 'typebox'

/** Values by dimension. */
export type Values<Dimension extends string> = Readonly<Partial<Record<Dimension, readonly string[]>>>

/** Query parameters as they came; one that is given twice is a list. */
export type GivenParameters = Readonly<Record<string, string | readonly string[] | undefined>>

/** A question that was read, or every problem of its parameters. */
export type Parsed<Query> =
  | { readonly kind: 'query'; readonly query: Query }
  | { readonly kind: 'problems'; readonly problems: readonly string[] }

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `now`, or so long before it. Four digits reach beyond what is kept, and stay within ClickHouse's times. */
function relativeToNow(text: string, nowMs: number): number | undefined {
  const [whole, number = '0', unit = 'm'] = /^now(?:-(\d{1,4})([mhd]))?$/.exec(text) ?? []
  return whole === undefined ? undefined : nowMs - Number(number) * (unitMs[unit] ?? 0)
}

/** A date begins in the zone: at 01:00 where clocks skip midnight. */
function instant(text: string, timeZone: string): number | undefined {
  // Date.parse takes many forms; only ISO 8601 with a zone means the same everywhere.
  const isIso = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text)
  const ms = isIso ? Date.parse(text) : Number.NaN
  // The engine takes 31 February for 3 March; a calendar does not have it.
  const [year = 0, month = 0, day = 0] = text.slice(0, 10).split('-').map(Number)
  if (Number.isNaN(ms) || day > new Date(Date.UTC(year, month, 0)).getUTCDate()) return undefined
  return text.length > 10 ? ms : Temporal.PlainDate.from(text).toZonedDateTime(timeZone).epochMilliseconds
}

const timeForms = '2026-01-31, 2026-01-31T14:00:00Z, now or now-24h (m, h, d)'

/** Reads a time as `from` has it. Undefined, with a problem, where it is none. */
export function readTime(
  name: string,
  text: string,
  { timeZone, nowMs }: { readonly timeZone: string; readonly nowMs: number },
  problems: string[],
): number | undefined {
  const ms = relativeToNow(text, nowMs) ?? instant(text, timeZone)
  if (ms === undefined) problems.push(`${name} must be like ${timeForms}, but is ${JSON.stringify(text)}`)
  return ms
}

/** Values of one filter, and bytes of a value: more is a list of one's own to join with, in SQL. */
const valuesMax = 100
const valueBytesMax = 512
const bytesOf = new TextEncoder()

/** The values of a parameter. */
export const listOf = (value: string | readonly string[] | undefined): readonly string[] =>
  value === undefined ? [] : typeof value === 'string' ? [value] : value

/** Filters of each dimension that is given; `prefix` is `not_` for those that exclude. */
export function readFilters<Dimension extends string>(
  dimensions: readonly Dimension[],
  prefix: '' | 'not_',
  given: GivenParameters,
  problems: string[],
): Values<Dimension> {
  const filters: Partial<Record<Dimension, readonly string[]>> = {}
  for (const dimension of dimensions) {
    const name = `${prefix}${dimension}`
    const values = Object.hasOwn(given, name) ? listOf(given[name]) : []
    if (values.length > valuesMax) problems.push(`${name} has ${values.length} values; at most ${valuesMax} are taken`)
    if (values.some((value) => bytesOf.encode(value).length > valueBytesMax)) {
      problems.push(`a value of ${name} is longer than ${valueBytesMax} bytes`)
    }
    if (values.length > 0) filters[dimension] = values
  }
  return filters
}

const isText = (value: unknown) => typeof value === 'string'
const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)

/** Parameters that came as JSON, as a query has them. A list of none is a problem: left out, it would mean all. */
export function parametersOf(body: unknown): { readonly given: GivenParameters; readonly problems: readonly string[] } {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return { given: {}, problems: ['the body must be an object of parameters, such as {"subject": ["acme"]}'] }
  }
  const given: Record<string, string | readonly string[]> = {}
  const problems: string[] = []
  for (const [name, value] of Object.entries(body)) {
    const values: unknown[] = Array.isArray(value) ? value : [value]
    if (values.length === 0) problems.push(`${name} has no value; leave it out to ask for all`)
    else if (!values.every(Array.isArray(value) ? isText : isScalar))
      problems.push(`${name} must be a text, a number, true, false, or a list of texts`)
    else given[name] = Array.isArray(value) ? values.map(String) : String(value)
  }
  return { given, problems }
}

type Rules = Readonly<{
  type?: string
  enum?: readonly string[]
  minimum?: number
  maximum?: number
  maxLength?: number
}>

/** What is wrong with the text of a parameter by its schema; a pattern is worded by the reader of its value. */
function faultOf(name: string, text: string, { type, enum: known, maxLength, ...range }: Rules): string | undefined {
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = range
  if (known !== undefined && !known.includes(text)) {
    const names = known.filter((one) => !one.startsWith('-'))
    const words = names.length > 2 ? `one of ${names.join(', ')}` : names.join(' or ')
    const minus = names.length < known.length ? ', optionally with a leading -' : ''
    return `${name} must be ${words}${minus}${didYouMean(text, known)}`
  }
  if (type === 'boolean' && text !== 'true' && text !== 'false') return `${name} must be true or false`
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (type === 'integer' && !(number >= minimum && number <= maximum)) {
    return `${name} must be a number from ${minimum} to ${maximum}`
  }
  const isLong = maxLength !== undefined && bytesOf.encode(text).length > maxLength
  return isLong ? `${name} is longer than ${maxLength} bytes` : undefined
}

/**
 * Each parameter that is no list as one text, as its schema says. One that is given several times or is not known is a
 * problem.
 */
export function readParameters(
  schemas: TProperties,
  given: GivenParameters,
  problems: string[],
): Record<string, string | undefined> {
  const params: Record<string, string | undefined> = {}
  const unknown: string[] = []
  for (const [name, value] of Object.entries(given)) {
    const rules: Rules | undefined = Object.hasOwn(schemas, name) ? (schemas[name] as Rules) : undefined
    if (rules === undefined) unknown.push(name)
    else if (rules.type === 'array') continue
    else if (typeof value === 'string') {
      params[name] = value
      problems.push(...[faultOf(name, value, rules)].filter((fault) => fault !== undefined))
    } else if (value !== undefined) {
      problems.push(`${name} is given ${value.length} times; give it once, several values separated by commas`)
    }
  }
  if (unknown.length > 0) {
    const names = Object.keys(schemas)
    const near = didYouMean(unknown[0] ?? '', names)
    problems.push(`unknown parameters: ${unknown.join(', ')}; known are ${names.join(', ')}${near}`)
  }
  return params
}

/** A whole number of a parameter, with a problem where it is none of that range. */
export function readNumber(
  { name, value, min, max }: { readonly name: string; readonly value: string; readonly min: number; max: number },
  problems: string[],
): number {
  const fault = faultOf(name, value, { type: 'integer', minimum: min, maximum: max })
  if (fault !== undefined) problems.push(fault)
  return Number(value)
}

/** The time that a question is about; `spanMs` before its end if it does not say. */
export function readSpan(
  params: Readonly<Record<string, string | undefined>>,
  { nowMs, spanMs }: { readonly nowMs: number; readonly spanMs: number },
  problems: string[],
): { readonly timeZone: string; readonly fromMs: number; readonly toMs: number } {
  const { time_zone: written = 'UTC' } = params
  const zone = parseTimeZone(written)
  if (zone === undefined) {
    problems.push(`time_zone must be an IANA time zone such as Asia/Kathmandu, but is ${JSON.stringify(written)}`)
  }
  const timeZone = zone ?? 'UTC'
  const time = (name: 'from' | 'to', fallback: number) => {
    const text = params[name]
    if (text === undefined) return fallback
    return readTime(name, text, { timeZone, nowMs }, problems) ?? fallback
  }
  const toMs = time('to', nowMs)
  const fromMs = time('from', toMs - spanMs)
  if (fromMs >= toMs) problems.push('from must lie before to')
  return { timeZone, fromMs, toMs }
}
