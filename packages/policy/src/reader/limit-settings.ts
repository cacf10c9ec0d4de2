import { type Algorithm, type Limit, periodUnits, type Span, type Threshold } from '@weir/core/limits/limit.ts'
import { parseDurationMs, parsePercent } from '../policy-values.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'

export type Fields = ReadonlyMap<string, Field>

/** Redis's client rounds replies within 48 of 2^53; up to here every number is exact, sums with a cost included. */
export const unitsMax = 9_000_000_000_000_000
/** Shorter, and a window is over before Redis has answered; longer is a calendar's business. */
const windowMsMin = 100
export const windowMsMax = 366 * 86_400_000
/** Shorter is what Retry-After does anyway; longer is a decision for a person, and should be looked at again. */
const blockMsMin = 1_000
const blockMsMax = 31 * 86_400_000

/** Whoever wants to hear of more looks at a chart. */
const thresholdsMax = 20

export const durationRule = 'a duration such as 10s, 1m, 2h or 7d'

/** What of a limit a subject may have its own version of. */
export type LimitSettings = Pick<Limit, 'size' | 'capacity' | 'mode' | 'blockMs' | 'onUnavailable' | 'thresholds'>

/** For settings that are not written. Without `capacity` the burst is the size. */
export interface SettingDefaults extends Omit<LimitSettings, 'size' | 'capacity'> {
  readonly size: number | undefined
  readonly capacity: number | undefined
}

export const settingKeys = ['size', 'burst', 'mode', 'block', 'onUnavailable', 'thresholds'] as const

/** The settings among the fields of a limit, or of a subject's own version of one. */
export function readSettings(
  reader: PolicyReader,
  fields: Fields,
  of: { readonly algorithm: Algorithm | undefined; readonly span: Span | undefined; readonly cooldownMs: number },
  otherwise: SettingDefaults,
): LimitSettings | undefined {
  const field = <T>(key: (typeof settingKeys)[number], read: (field: Field) => T | undefined, missing: T) => {
    const found = fields.get(key)
    return found === undefined ? missing : read(found)
  }
  // A window can be shut; what flows back or slides cannot.
  const sizeMin = of.algorithm === 'fixed_window' ? 0 : 1
  const size = field('size', (at) => reader.integer(at, sizeMin, unitsMax), otherwise.size)
  const capacity = field('burst', (at) => readBurst(reader, at, of.algorithm), otherwise.capacity ?? size)
  const mode = field('mode', (at) => reader.oneOf(at, ['enforce', 'shadow']), otherwise.mode)
  const inherited = mode === 'shadow' ? 0 : otherwise.blockMs
  const blockMs = field('block', (at) => readBlock(reader, at, mode), inherited)
  const onUnavailable = field(
    'onUnavailable',
    (at) => reader.oneOf(at, ['allow', 'deny', 'local']),
    otherwise.onUnavailable,
  )
  const inheritedThresholds = size === 0 ? [] : otherwise.thresholds
  const thresholds = field('thresholds', (at) => readThresholds(reader, at, { ...of, size }), inheritedThresholds)
  if (size === undefined || capacity === undefined || mode === undefined || blockMs === undefined) return undefined
  if (onUnavailable === undefined || thresholds === undefined) return undefined
  return { size, capacity, mode, blockMs, onUnavailable, thresholds }
}

function readBurst(reader: PolicyReader, field: Field, algorithm: Algorithm | undefined): number | undefined {
  const burst = reader.integer(field, 1, unitsMax)
  if (algorithm === undefined || algorithm === 'token_bucket') return burst
  return reader.problemAtKey(field, `only a token_bucket has a \`burst\`; this is a ${algorithm}`)
}

function readBlock(reader: PolicyReader, field: Field, mode: Limit['mode'] | undefined): number | undefined {
  const ms = reader.text(field, durationRule, parseDurationMs)
  if (ms === undefined) return undefined
  if (mode === 'shadow') return reader.problemAtKey(field, 'a limit with `mode: shadow` shuts nobody out; leave it out')
  if (ms >= blockMsMin && ms <= blockMsMax) return ms
  return reader.problem(field, `must be from ${blockMsMin / 1_000}s to ${blockMsMax / 86_400_000}d`)
}

/** The length of time or the calendar period that a limit is counted over. */
export function readSpan(
  reader: PolicyReader,
  place: Place,
  fields: Fields,
  algorithm: Algorithm | undefined,
): Span | undefined {
  const [window, period] = [fields.get('window'), fields.get('period')]
  if (window !== undefined && period !== undefined) {
    const line = reader.lineOf(window)
    return reader.problemAtKey(period, `stands beside \`window\` (line ${line}); a limit has one of them`)
  }
  const isFixed = algorithm === undefined || algorithm === 'fixed_window'
  if (window !== undefined) {
    const ms = reader.text(window, durationRule, parseDurationMs)
    if (ms === undefined) return undefined
    if (ms >= windowMsMin && ms <= windowMsMax) return { kind: 'window', ms }
    return reader.problem(window, `must be from ${windowMsMin}ms to ${windowMsMax / 86_400_000}d`)
  }
  if (period === undefined) return reader.problemAtKey(place, isFixed ? 'needs `window` or `period`' : 'needs `window`')
  if (!isFixed) {
    return reader.problemAtKey(period, `only a fixed_window has a calendar \`period\`; a ${algorithm} has a \`window\``)
  }
  const unit = reader.oneOf(period, periodUnits)
  return unit === undefined ? undefined : { kind: 'period', unit }
}

function readThresholds(
  reader: PolicyReader,
  place: Place,
  of: { readonly span: Span | undefined; readonly cooldownMs: number; readonly size: number | undefined },
): readonly Threshold[] | undefined {
  const { span, cooldownMs, size } = of
  const items = reader.list(place, 'a list such as [80%, 100%]')
  if (items === undefined) return undefined
  if (size === 0 && items.length > 0)
    return reader.problem(place, 'are never reached with a `size` of 0; leave them out')
  if (span?.kind === 'window' && items.length > 0 && cooldownMs === 0) {
    return reader.problem(
      place,
      'need a `period`, or beside a `window` a `cooldown`: else they would alert without end',
    )
  }
  if (items.length > thresholdsMax) {
    return reader.problem(place, `has ${items.length} thresholds; a limit has at most ${thresholdsMax}`)
  }
  const thresholds: Threshold[] = []
  const last = { percent: 0, units: 0 }
  let wrong = false
  for (const item of items) {
    const threshold = readThreshold(reader, item)
    if (threshold === undefined) wrong = true
    else if (isAbove(threshold, last)) {
      thresholds.push(threshold)
      Object.assign(last, threshold)
    } else {
      wrong = true
      const before = 'percent' in threshold ? `${last.percent}%` : String(last.units)
      reader.problem(item, `must be above the ${before} before it`)
    }
  }
  return wrong ? undefined : thresholds
}

const isAbove = (threshold: Threshold, last: { readonly percent: number; readonly units: number }): boolean =>
  'percent' in threshold ? threshold.percent > last.percent : threshold.units > last.units

function readThreshold(reader: PolicyReader, item: Place): Threshold | undefined {
  if (typeof reader.scalar(item) === 'number') {
    const units = reader.integer(item, 1, unitsMax)
    return units === undefined ? undefined : { units }
  }
  const percent = reader.text(item, 'a percentage from 1% to 100%, or a number of units', parsePercent)
  return percent === undefined ? undefined : { percent }
}
