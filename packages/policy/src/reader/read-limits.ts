import {
  type Algorithm,
  algorithms,
  isOfOneSubject,
  type Limit,
  limitsPerDecisionMax,
  type ScopePart,
  type Span,
  type Threshold,
} from '@weir/core/limits/limit.ts'
import { nameRule, parseDurationMs, parseName } from '../policy-values.ts'
import { isWithinBounds } from './limit-bounds.ts'
import { durationRule, type Fields, readSettings, readSpan, settingKeys, unitsMax } from './limit-settings.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'
import { readOnExceed } from './read-on-exceed.ts'
import { checkReplaced, namesReplaced, type Replacing, readReplaces } from './read-replaces.ts'
import { readScope } from './read-scope.ts'

const limitKeys = [
  ...['algorithm', 'window', 'period', 'by', 'applies', 'lease', 'cooldown', 'onExceed', 'replaces', ...settingKeys],
]
/** Shorter, and people stop reading; longer is never. */
const cooldownMsMin = 10_000
const cooldownMsMax = 31 * 86_400_000
/** These name policies of their own in the RateLimit fields. */
const reservedNames = ['unauthenticated', 'unlimited']

/** The limits by name; undefined stands for one that is there but wrong, so that what refers to it is not wrong too. */
export type Limits = ReadonlyMap<string, Limit | undefined>

/** Those that are as they were in `before` are the very same objects: what is kept beside a limit is kept then. */
export function readLimits(reader: PolicyReader, place: Place, before: ReadonlyMap<string, Limit>): Limits {
  const limits = new Map<string, Limit | undefined>()
  const replacing: Replacing[] = []
  let forAll = 0
  for (const [name, field] of reader.map(place, 'a map of limits by name') ?? []) {
    if (parseName(name) === undefined) reader.problemAtKey(field, `the name of a limit must be ${nameRule}`)
    if (reservedNames.includes(name)) reader.problemAtKey(field, 'this name is reserved for the RateLimit fields')
    const limit = sameAs(
      before.get(name),
      readLimit(reader, name, field, (one) => replacing.push(one)),
    )
    limits.set(name, limit)
    if (limit?.applies !== 'all') continue
    forAll += 1
    if (forAll <= limitsPerDecisionMax) continue
    reader.problemAtKey(
      field,
      `is the ${forAll}th limit with \`applies: all\`; a decision has at most ${limitsPerDecisionMax}`,
    )
  }
  checkReplaced(reader, limits, replacing)
  return limits
}

function sameAs(before: Limit | undefined, limit: Limit | undefined): Limit | undefined {
  return before !== undefined && JSON.stringify(before) === JSON.stringify(limit) ? before : limit
}

function readLimit(
  reader: PolicyReader,
  name: string,
  place: Field,
  notes: (replacing: Replacing) => void,
): Limit | undefined {
  const fields = reader.fields(place, 'a limit', limitKeys, ['algorithm', 'size'])
  if (fields === undefined) return undefined
  const field = <T>(key: string, read: (field: Field) => T | undefined, otherwise: T | undefined) => {
    const found = fields.get(key)
    return found === undefined ? otherwise : read(found)
  }
  const algorithm = field('algorithm', (at) => reader.oneOf(at, algorithms), undefined)
  const span = readSpan(reader, place, fields, algorithm)
  const by = field('by', (at) => readScope(reader, at, span), [{ kind: 'subject' }])
  const applies = field('applies', (at) => reader.oneOf(at, ['plan', 'all']), 'plan')
  const cooldownMs = field('cooldown', (at) => readCooldown(reader, at, span), 0)
  const settings = readSettings(
    reader,
    fields,
    { algorithm, span, cooldownMs: cooldownMs ?? 0 },
    {
      ...{ size: undefined, capacity: undefined, mode: 'enforce', blockMs: 0 },
      ...{ onUnavailable: defaultOnUnavailable(by ?? []), thresholds: defaultThresholds(span) },
    },
  )
  const replaces = field('replaces', (at) => readReplaces(reader, at, name), undefined)
  if (replaces !== undefined) notes(replaces)
  const lease = field('lease', (at) => readLease(reader, at, algorithm, fields), 0)
  const onExceed = field('onExceed', (at) => readOnExceed(reader, at, fields), { kind: 'deny' })
  if (algorithm === undefined || span === undefined || by === undefined || applies === undefined) return undefined
  if (settings === undefined || lease === undefined || cooldownMs === undefined) return undefined
  if (onExceed === undefined) return undefined
  const limit: Limit = {
    name,
    algorithm,
    span,
    by,
    applies,
    lease,
    cooldownMs,
    onExceed,
    ...settings,
    ...namesReplaced(replaces),
  }
  return isWithinBounds(reader, place, fields, limit) ? limit : undefined
}

function readCooldown(reader: PolicyReader, field: Field, span: Span | undefined): number | undefined {
  const ms = reader.text(field, durationRule, parseDurationMs)
  if (span?.kind === 'period')
    return reader.problemAtKey(
      field,
      'a limit with a `period` alerts once in each; only one with a `window` has a `cooldown`',
    )
  if (ms === undefined || (ms >= cooldownMsMin && ms <= cooldownMsMax)) return ms
  return reader.problem(field, `must be from ${cooldownMsMin / 1_000}s to ${cooldownMsMax / 86_400_000}d`)
}

function readLease(
  reader: PolicyReader,
  field: Field,
  algorithm: Algorithm | undefined,
  fields: Fields,
): number | undefined {
  const lease = reader.integer(field, 1, unitsMax)
  if (lease === undefined || algorithm === undefined) return undefined
  if (algorithm !== 'fixed_window') {
    return reader.problemAtKey(
      field,
      `only a fixed_window has a \`lease\`: a ${algorithm} counts every unit by the time at which it is used`,
    )
  }
  const block = fields.get('block')
  if (block === undefined) return lease
  const line = reader.lineOf(block)
  return reader.problemAtKey(
    field,
    `stands beside \`block\` (line ${line}): a process that holds units would let the blocked in`,
  )
}

/** Whoever is not known by a key or as a subject is held to the limit also without Redis, as far as one process can. */
function defaultOnUnavailable(by: readonly ScopePart[]): Limit['onUnavailable'] {
  return by.some(({ kind }) => kind === 'ip') && !isOfOneSubject(by) ? 'local' : 'allow'
}

/** Whoever has a quota of a day or longer wants to hear of it before it is used up; shorter ones would only be noise. */
function defaultThresholds(span: Span | undefined): readonly Threshold[] {
  const isLong = span?.kind === 'period' && ['day', 'week', 'month'].includes(span.unit)
  return isLong ? [{ percent: 80 }, { percent: 100 }] : []
}
