import { definedFields } from '@weir/core/defined-fields.ts'
import { unitPattern } from '@weir/core/limits/limit.ts'
import { unitsPerRequestMax } from '@weir/core/limits/limit-store.ts'
import { unpricedUnit } from '@weir/core/prices/rate-card.ts'
import {
  type AfterSource,
  type BeforeSource,
  type Dimension,
  type Meter,
  type MeteredUnit,
  meterDefaults,
  presetNames,
  quantityMax,
} from '@weir/meters/meter.ts'
import { costPattern, costSourceRule, isPointer, parseCostSource } from '../policy-values.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** Labels of a request besides its preset's one; each multiplies the rows of its usage. A record has eight at most. */
const dimensionsMax = 7
/** Values of a label a day: what a page can still list. */
const valuesMax = 1_000
const valuesDefault = 200
const valueLengthMax = 128

const before = t.text<BeforeSource>(costSourceRule, parseCostSource, { pattern: costPattern })

const afterRule =
  'header:NAME, trailer:NAME, json:/pointer, sse:/pointer, sse:EVENT/pointer, bytes_in, bytes_out or duration'
const after = t.text<AfterSource>(afterRule, parseAfter, {
  pattern: '^((header|trailer):[!-~]{1,64}|json:/[!-~]+|sse:[\\w.-]{0,64}/[!-~]+|bytes_in|bytes_out|duration)$',
})

function parseAfter(text: string): AfterSource | undefined {
  if (text === 'bytes_in' || text === 'bytes_out' || text === 'duration') return { kind: text }
  const [, kind, event = '', rest = ''] = /^(header|trailer|json|sse):(?:([\w.-]{0,64})(?=\/))?(.+)$/.exec(text) ?? []
  if (kind === 'header' || kind === 'trailer') {
    return /^[\w!#$%&'*+.^`|~-]{1,64}$/.test(rest) ? { kind, name: rest.toLowerCase() } : undefined
  }
  if (!isPointer(rest)) return undefined
  if (kind === 'json') return event === '' ? { kind, pointer: rest } : undefined
  return kind === 'sse' ? { kind, event: event === '' ? undefined : event, pointer: rest } : undefined
}

const quantity = t.integer(0, quantityMax)
const said = t.object('a quantity before the response', {
  from: t.required(`Where the request says it: ${costSourceRule}.`, before),
  default: t.required('The quantity if the request does not say it.', quantity),
})

/** A number, or where the request says one. */
const beforeOrNumber: t.ValueType<Pick<MeteredUnit, 'before' | 'otherwise'>> = {
  schema: { oneOf: [quantity.schema, said.schema] },
  read(reader, at) {
    if (typeof reader.scalar(at) === 'number') {
      const otherwise = quantity.read(reader, at)
      return otherwise === undefined ? undefined : { before: undefined, otherwise }
    }
    if (typeof reader.scalar(at) === 'string')
      return reader.wrong(at, 'must be a whole number, or `from` and `default`')
    const found = said.read(reader, at)
    return found === undefined ? undefined : { before: found.from, otherwise: found.default }
  },
}

const unit = t.object('a unit', {
  before: t.required('The most that a request uses: a number, or where it says one.', beforeOrNumber),
  after: t.optional(`What it used: ${afterRule}. Default: as before.`, after),
})
/** Names of units. */
export const unitNames = {
  rule: 'up to 64 characters from a-z, 0-9 and _, and not cost or requests',
  pattern: new RegExp(unitPattern),
  called: 'name',
}
const units = t.entries(unit.schema, { plural: 'units', one: 'a unit', max: unitsPerRequestMax, ids: unitNames })

const dimension = t.object('a dimension', {
  from: t.required(`Where the request says it: ${costSourceRule}.`, before),
  values: t.optional(
    'The values it may have; any other is recorded as _other.',
    t.list('a list of values', t.matching(`a text of at most ${valueLengthMax} characters`, /^.{1,128}$/), {
      min: 1,
      max: valuesMax,
      wrongCount: (count) => `has ${count} values; a dimension has 1 to ${valuesMax}`,
      nameOf: String,
    }),
  ),
  max: t.withDefault(
    `Different values a day and process, before others are recorded as _other. Default: ${valuesDefault}.`,
    t.integer(1, valuesMax),
    valuesDefault,
  ),
})
const dimensions = t.entries(dimension.schema, { plural: 'dimensions', one: 'a dimension', max: dimensionsMax })

/** A section within an entry. */
const section = <T>(
  entries: ReturnType<typeof t.entries>,
  read: (reader: PolicyReader, at: SourcePosition) => T | undefined,
): t.ValueType<ReadonlyMap<string, T>> => ({
  schema: entries.schema,
  read(reader, at) {
    const found = entries.each(reader, at, (_, field) => read(reader, field))
    return new Map([...found].flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])))
  },
})

const meter = t.object('a meter', {
  preset: t.optional('An API whose requests and responses Weir can read.', t.oneOf(presetNames)),
  units: t.optional(
    "Units besides the preset's, by name.",
    section<MeteredUnit>(units, (reader, at) => {
      const found = unit.read(reader, at)
      return found === undefined ? undefined : { ...found.before, after: found.after }
    }),
  ),
  dimensions: t.optional(
    "Labels of usage besides the preset's, by name.",
    section<Dimension>(dimensions, (reader, at) => {
      const found = dimension.read(reader, at)
      return found === undefined ? undefined : { ...found, values: found.values }
    }),
  ),
  maxOutput: t.optional('The most tokens of a response to a request that does not say.', quantity),
  context: t.optional(
    "The most tokens of a prompt that its bytes do not bound, such as one with a document: the model's context.",
    quantity,
  ),
  promptRatio: t.withDefault(
    'Bytes of a prompt for each token held: 1 is never exceeded, more is a guess. Default: 1.',
    t.integer(1, 16),
    1,
  ),
  includeUsage: t.withDefault(
    'openai only: asks a streamed chat for its usage, and keeps that event from the client. Default: false.',
    t.boolean,
    false,
  ),
  drain: t.withDefault(
    'Reads a response to its end, for up to 120 s, although its client has gone. Default: false.',
    t.boolean,
    false,
  ),
  unsaid: t.withDefault(
    'What a response without usage counts as: an estimate of what was seen, or all that was held. Default: count.',
    t.oneOf(['count', 'hold']),
    'count',
  ),
})

/** The section `meters`. */
export const meterEntries = t.entries(meter.schema, {
  plural: 'meters',
  one: 'a meter',
  reserved: { names: ['none'], message: 'this name is reserved: a route with `meter: none` is not metered' },
})

/** The meters by name; undefined for one that is there but wrong. One as in `before` is the same object. */
export const readMeters = (
  reader: PolicyReader,
  at: SourcePosition,
  before: ReadonlyMap<string, Meter>,
  rateCards: ReadonlyMap<string, unknown>,
) =>
  meterEntries.each(reader, at, (name, field): Meter | undefined => {
    const found = meter.read(reader, field)
    if (found === undefined) return undefined
    const money = [...(found.units?.keys() ?? [])].find((one) => one === unpricedUnit || rateCards.has(one))
    if (money !== undefined) return reader.problem(field, `cannot have a unit \`${money}\`: rate cards write it`)
    if (found.preset === undefined && (found.units?.size ?? 0) === 0) {
      return reader.problem(field, 'needs a `preset` or `units`: it measures nothing')
    }
    if (found.includeUsage && found.preset !== 'openai') {
      return reader.problem(field, 'has `includeUsage`, which only `preset: openai` supports')
    }
    const next: Meter = { ...meterDefaults, ...definedFields(found), name }
    const known = before.get(name)
    return known !== undefined && textOf(known) === textOf(next) ? known : next
  })

const textOf = ({ units: own, dimensions: labels, ...meter }: Meter) => JSON.stringify([meter, [...own], [...labels]])
