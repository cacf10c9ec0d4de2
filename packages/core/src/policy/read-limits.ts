import {
  algorithms,
  type Limit,
  limitsPerDecisionMax,
  periodUnits,
  type ScopePart,
  type Span,
} from '../limits/limit.ts'
import {
  algorithmsNotBuilt,
  limitKeyNamesNotBuilt,
  modesNotBuilt,
  notBuilt,
  onUnavailableNotBuilt,
  refuseLimitKeys,
  scopesNotBuilt,
} from './not-built.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'
import { nameRule, parseDurationMs, parseName, parsePercent } from './policy-values.ts'
import { didYouMean } from './suggest.ts'

const limitKeys = [
  ...['algorithm', 'size', 'window', 'period', 'by', 'applies', 'thresholds', 'mode', 'onUnavailable'],
  ...limitKeyNamesNotBuilt,
]
const plainScopes = ['subject', 'key', 'ip', 'route', 'method', 'global'] as const
/** Shorter, and a window is over before Redis has answered; longer is a calendar's business. */
const windowMsMin = 100
const windowMsMax = 366 * 86_400_000
/** Every plain scope once and two named ones: beyond, a Redis key per request is likelier than a meaning. */
const scopePartsMax = 8
/** These name policies of their own in the RateLimit fields. */
const reservedNames = ['unauthenticated', 'unlimited']

/** The limits by name; undefined stands for one that is there but wrong, so that what refers to it is not wrong too. */
export function readLimits(reader: PolicyReader, place: Place): Map<string, Limit | undefined> {
  const limits = new Map<string, Limit | undefined>()
  let forAll = 0
  for (const [name, field] of reader.map(place, 'a map of limits by name') ?? []) {
    if (parseName(name) === undefined) reader.problemAtKey(field, `the name of a limit must be ${nameRule}`)
    if (reservedNames.includes(name)) reader.problemAtKey(field, 'this name is reserved for the RateLimit fields')
    const limit = readLimit(reader, name, field)
    limits.set(name, limit)
    if (limit?.applies !== 'all') continue
    forAll += 1
    if (forAll <= limitsPerDecisionMax) continue
    reader.problemAtKey(
      field,
      `is the ${forAll}th limit with \`applies: all\`; a decision has at most ${limitsPerDecisionMax}`,
    )
  }
  return limits
}

function readLimit(reader: PolicyReader, name: string, place: Field): Limit | undefined {
  const fields = reader.fields(place, 'a limit', limitKeys, ['algorithm', 'size'])
  if (fields === undefined) return undefined
  refuseLimitKeys(reader, fields)
  const field = <T>(key: string, read: (field: Field) => T | undefined, otherwise: T | undefined) => {
    const found = fields.get(key)
    return found === undefined ? otherwise : read(found)
  }
  const algorithm = field('algorithm', (at) => readAlgorithm(reader, at), undefined)
  const size = field('size', (at) => reader.integer(at, 1, Number.MAX_SAFE_INTEGER), undefined)
  const span = readSpan(reader, place, fields.get('window'), fields.get('period'))
  const by = field('by', (at) => readScope(reader, at, span), [{ kind: 'subject' }])
  const applies = field('applies', (at) => reader.oneOf(at, ['plan', 'all']), 'plan')
  const mode = field('mode', (at) => readBuilt(reader, at, ['enforce', 'shadow'], modesNotBuilt), 'enforce')
  const onUnavailable = field(
    'onUnavailable',
    (at) => readBuilt(reader, at, ['allow', 'deny', 'local'], onUnavailableNotBuilt),
    'allow',
  )
  const thresholds = field('thresholds', (at) => readThresholds(reader, at, span), defaultThresholds(span))
  if (algorithm === undefined || size === undefined || span === undefined || by === undefined) return undefined
  if (applies === undefined || mode === undefined || onUnavailable === undefined || thresholds === undefined) {
    return undefined
  }
  return {
    ...{ name, algorithm, size, capacity: size, span, by, applies },
    ...{ mode, blockMs: 0, lease: 0, onUnavailable, thresholds },
  }
}

function readAlgorithm(reader: PolicyReader, place: Place) {
  const algorithm = reader.oneOf(place, algorithms)
  if (algorithm === undefined || !algorithmsNotBuilt.includes(algorithm)) return algorithm
  const built = algorithms.filter((candidate) => !algorithmsNotBuilt.includes(candidate))
  return reader.problem(place, notBuilt(`the algorithm ${algorithm}`, built.join(', ')))
}

function readBuilt<const T extends string>(
  reader: PolicyReader,
  field: Field,
  options: readonly T[],
  missing: readonly string[],
): T | undefined {
  const option = reader.oneOf(field, options)
  if (option === undefined || !missing.includes(option)) return option
  const built = options.filter((candidate) => !missing.includes(candidate))
  return reader.problem(field, notBuilt(`\`${field.key}: ${option}\``, built.join(', ')))
}

function readSpan(reader: PolicyReader, place: Place, window?: Field, period?: Field): Span | undefined {
  if (window !== undefined && period !== undefined) {
    return reader.problemAtKey(
      period,
      `stands beside \`window\` (line ${reader.lineOf(window)}); a limit has one of them`,
    )
  }
  if (window !== undefined) {
    const ms = reader.text(window, 'a duration such as 10s, 1m, 2h or 7d', parseDurationMs)
    if (ms === undefined) return undefined
    if (ms >= windowMsMin && ms <= windowMsMax) return { kind: 'window', ms }
    return reader.problem(window, `must be from ${windowMsMin}ms to ${windowMsMax / 86_400_000}d`)
  }
  if (period === undefined) return reader.problemAtKey(place, 'needs `window` or `period`')
  const unit = reader.oneOf(period, periodUnits)
  return unit === undefined ? undefined : { kind: 'period', unit }
}

function readScope(reader: PolicyReader, field: Field, span: Span | undefined): readonly ScopePart[] | undefined {
  const items = reader.list(field, 'a list such as [subject] or [ip, route]')
  if (items === undefined) return undefined
  if (items.length === 0 || items.length > scopePartsMax) {
    return reader.problem(field, `must name 1 to ${scopePartsMax} scopes, but names ${items.length}`)
  }
  const parts = new Map<string, ScopePart | undefined>()
  for (const item of items) {
    const text = reader.text(item, `one of ${plainScopes.join(', ')}`, (given) => given)
    if (text === undefined) parts.set('', undefined)
    else if (parts.has(text)) reader.problem(item, `${text} is named twice`)
    else parts.set(text, readScopePart(reader, item, text))
  }
  const scope = [...parts.values()].filter((part) => part !== undefined)
  if (span?.kind === 'period' && !scope.some(({ kind }) => kind === 'subject' || kind === 'key')) {
    return reader.problem(
      field,
      notBuilt(
        'a calendar period over several subjects (whose time zone would it follow?)',
        'periods with subject or key in `by`',
      ),
    )
  }
  return scope.length === items.length ? scope : undefined
}

function readScopePart(reader: PolicyReader, place: Place, text: string): ScopePart | undefined {
  const kind = plainScopes.find((candidate) => candidate === text)
  if (kind !== undefined) return { kind }
  const named = /^(header|query|attribute):([\x21-\x7e]{1,64})$/.exec(text)
  const namedKind = scopesNotBuilt.find((candidate) => candidate === named?.[1])
  if (namedKind !== undefined)
    return reader.problem(place, notBuilt(`the scope ${namedKind}:NAME`, plainScopes.join(', ')))
  const known = [...plainScopes, 'header:NAME', 'query:NAME', 'attribute:NAME']
  return reader.problem(
    place,
    `must be one of ${known.join(', ')}, but is ${JSON.stringify(text.slice(0, 40))}${didYouMean(text, plainScopes)}`,
  )
}

/** Whoever has a quota of a day or longer wants to hear of it before it is used up; shorter ones would only be noise. */
function defaultThresholds(span: Span | undefined): readonly number[] {
  return span?.kind === 'period' && ['day', 'week', 'month'].includes(span.unit) ? [80, 100] : []
}

function readThresholds(reader: PolicyReader, place: Place, span: Span | undefined): readonly number[] | undefined {
  const items = reader.list(place, 'a list such as [80%, 100%]')
  if (items === undefined) return undefined
  if (span?.kind === 'window' && items.length > 0) {
    return reader.problem(
      place,
      `need a \`period\`: with a \`window\` they would need a \`cooldown\`, and ${notBuilt('it')}`,
    )
  }
  const percents: number[] = []
  let wrong = false
  for (const item of items) {
    const percent = readThreshold(reader, item)
    const last = percents.at(-1) ?? 0
    if (percent !== undefined && percent > last) percents.push(percent)
    else wrong = true
    if (percent !== undefined && percent <= last) reader.problem(item, `must be above the ${last}% before it`)
  }
  return wrong ? undefined : percents
}

function readThreshold(reader: PolicyReader, item: Place): number | undefined {
  if (typeof item.node?.toJSON() === 'number')
    return reader.problem(item, notBuilt('thresholds in units', 'percent, such as 80%'))
  return reader.text(item, 'a percentage from 1% to 100%', parsePercent)
}
