import { algorithmFacts, algorithmsWith, countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import type { Algorithm, Limit, Span, Threshold } from '@weir/core/limits/limit.ts'
import { amountPattern, formatNanos, parseNanos } from '@weir/core/prices/amount.ts'
import { parsePercent, percentPattern } from '../policy-values.ts'
import type { Fields, PolicyReader } from './policy-reader.ts'
import * as t from './value-types.ts'

/** Redis's client rounds replies within 48 of 2^53; up to here every number is exact, sums with a cost included. */
export const unitsMax = 9_000_000_000_000_000
/** More thresholds than this are a chart's business. */
const thresholdsMax = 20

/** An amount of a rate card's currency in whole nano-units: as exact as counts are. */
export const money = t.text(
  'an amount in quotes, up to "9000000" and of at most 9 decimal places, such as "20.00"',
  parseNanos,
  { pattern: amountPattern.source },
)
const atLeastOne = t.integer(1, unitsMax)

const threshold = (units: t.ValueType<number>, isMoney: boolean): t.ValueType<Threshold> => ({
  schema: {
    oneOf: [{ type: 'string', pattern: percentPattern.source }, { type: 'integer', minimum: 1 }, money.schema],
  },
  read(reader, at) {
    const written = reader.scalar(at)
    const isPercent = typeof written === 'string' && (!isMoney || written.endsWith('%'))
    if (!isPercent) {
      const found = units.read(reader, at)
      return found === undefined ? undefined : { units: found }
    }
    const percent = reader.text(at, 'a percentage from 1% to 100%, or a number of units', parsePercent)
    return percent === undefined ? undefined : { percent }
  },
})

/** Percents and units, each ascending. */
const thresholdsIn = (units: t.ValueType<number>, isMoney: boolean) =>
  t.checked(
    t.list('a list such as [80%, 100%]', t.located(threshold(units, isMoney)), {
      max: thresholdsMax,
      wrongCount: (count) => `has ${count} thresholds; a limit has at most ${thresholdsMax}`,
    }),
    (found, reader): readonly Threshold[] => {
      const last = { percent: 0, units: 0 }
      return found.flatMap(({ value, at }) => {
        const isAbove = 'percent' in value ? value.percent > last.percent : value.units > last.units
        if (!isAbove) {
          const before =
            'percent' in value ? `${last.percent}%` : isMoney ? formatNanos(last.units) : String(last.units)
          reader.problem(at, `must be higher than the previous threshold, ${before}`)
          return []
        }
        Object.assign(last, value)
        return [value]
      })
    },
    { uniqueItems: true },
  )
const thresholds = { units: thresholdsIn(atLeastOne, false), money: thresholdsIn(money, true) }

/** Longer lists say nothing that the last of these does not; also checked in lua/scripts/decide.lua. */
const blockLengthsMax = 8
// Shorter is what Retry-After does anyway; longer is a decision for a person, and should be looked at again.
const blockLength = t.duration('1s', '31d')

const blockLengths = t.checked(
  t.list('a list such as [2m, 1h, 1d]', t.located(blockLength), {
    min: 1,
    max: blockLengthsMax,
    wrongCount: (count) => `must have 1 to ${blockLengthsMax} durations, but has ${count}`,
  }),
  (found, reader): readonly number[] => {
    for (const [index, { value, at }] of found.entries()) {
      const before = found[index - 1]?.value
      if (before !== undefined && value <= before) reader.problem(at, 'must be longer than the previous duration')
    }
    return found.map(({ value }) => value)
  },
)

/** One duration, or those of the first block, the second in a row and so on. */
const block: t.ValueType<readonly number[]> = {
  schema: { oneOf: [blockLength.schema, blockLengths.schema] },
  read(reader, at) {
    if (!reader.isEmpty(at) && reader.scalar(at) === undefined) return blockLengths.read(reader, at)
    const ms = blockLength.read(reader, at)
    return ms === undefined ? undefined : [ms]
  },
}

const sizeAbout =
  'Units admitted per window or period; for a token_bucket, units refilled per window. May be 0 for a fixed_window. Of money an amount in quotes.'
/** A window can be shut; what flows back or slides cannot. */
const sizes = { fixed: t.integer(0, unitsMax), other: atLeastOne }
const sizeInMoney = {
  fixed: money,
  other: t.checked(money, (size, reader, at) => (size > 0 ? size : reader.wrong(at, 'must be more than 0'))),
}
/** What of a limit is written, for editors: how it is read depends on what the limit counts. */
const size: t.ValueType<number> = { ...sizes.fixed, schema: { oneOf: [sizes.fixed.schema, money.schema] } }

/** What of a limit a subject may have its own version of. */
export const settingMembers = {
  size: t.optional(sizeAbout, size),
  burst: t.optional(
    'token_bucket only: the most units that can be used at once. Default: the size.',
    t.integer(1, unitsMax),
  ),
  mode: t.optional('shadow: counts and reports but never refuses. Default: enforce.', t.oneOf(['enforce', 'shadow'])),
  block: t.optional(
    'Blocks a subject that exceeds the limit for this long: 1s to 31d. A list such as [2m, 1h, 1d] blocks longer each time.',
    block,
  ),
  onUnavailable: t.optional(
    'Decision if Redis does not reply in time; local: each process applies its share of the limit. Default: local.',
    t.oneOf(['allow', 'deny', 'local']),
  ),
  thresholds: t.optional(
    'Percentages of the size, or units, that raise an alert, ascending: [80%, 100%].',
    thresholds.units,
  ),
}

/**
 * Returns the members with the sizes that an algorithm can have. `moneyMembers` are those of limits that count money,
 * whose sizes and thresholds are amounts too.
 */
export function membersByAlgorithm<M extends typeof settingMembers>(members: M, moneyMembers = members) {
  const withSize = (of: M, type: t.ValueType<number>): M => ({ ...of, size: { ...of.size, type } })
  const inMoney: M = { ...moneyMembers, thresholds: { ...members.thresholds, type: thresholds.money } }
  const units = { fixed: withSize(members, sizes.fixed), other: withSize(members, sizes.other) }
  const moneys = { fixed: withSize(inMoney, sizeInMoney.fixed), other: withSize(inMoney, sizeInMoney.other) }
  return (algorithm: Algorithm | undefined, isMoney = false): M => {
    const { fixed, other } = isMoney ? moneys : units
    return algorithm === undefined || algorithmFacts[algorithm].resetsAtOnce ? fixed : other
  }
}

type LimitSettings = Pick<
  Limit,
  'size' | 'capacity' | 'mode' | 'blockMs' | 'blockLengths' | 'onUnavailable' | 'thresholds'
>

/** For settings that are not written. Without `capacity` the burst is the size. */
interface SettingDefaults extends Omit<LimitSettings, 'size' | 'capacity'> {
  readonly size: number | undefined
  readonly capacity: number | undefined
}

/** The settings of a limit, or of a subject's own version of one; only right if no problem was found. */
export function checkSettings(
  reader: PolicyReader,
  fields: Fields,
  values: t.FoundValues<typeof settingMembers>,
  of: { readonly algorithm: Algorithm | undefined; readonly span: Span | undefined; readonly cooldownMs: number },
  otherwise: SettingDefaults,
): LimitSettings | undefined {
  const thresholdsAt = fields.get('thresholds')
  const size = fields.has('size') ? values.size : otherwise.size
  const mode = fields.has('mode') ? values.mode : otherwise.mode
  if (of.algorithm !== undefined && !algorithmFacts[of.algorithm].hasBurst) {
    reader.refuseKey(fields, 'burst', `only a ${algorithmsWith('hasBurst')} supports \`burst\`, not a ${of.algorithm}`)
  }
  const onUnavailableAt = fields.get('onUnavailable')
  if (of.algorithm !== undefined && countsInFlight({ algorithm: of.algorithm }) && values.onUnavailable === 'local') {
    const why = 'no process knows how many requests others have in flight'
    if (onUnavailableAt !== undefined) reader.problem(onUnavailableAt, `must be allow or deny: ${why}`)
  }
  if (mode === 'shadow') {
    reader.refuseKey(fields, 'block', 'a limit with `mode: shadow` never blocks; remove it')
  }
  if (thresholdsAt !== undefined && (values.thresholds?.length ?? 0) > 0) {
    if (size === 0) reader.problem(thresholdsAt, 'can never be reached with a `size` of 0; remove them')
    else if (of.span?.kind === 'window' && of.cooldownMs === 0) {
      const why = 'otherwise they would send alerts endlessly'
      reader.problem(thresholdsAt, `need a \`period\`, or a \`cooldown\` with a \`window\`: ${why}`)
    }
  }
  if (size === undefined || mode === undefined) return undefined
  const { blockMs, blockLengths } = values.block === undefined ? otherwise : blockOf(values.block)
  const hasBlock = mode !== 'shadow'
  return {
    size,
    capacity: values.burst ?? otherwise.capacity ?? size,
    mode,
    blockMs: hasBlock ? blockMs : 0,
    blockLengths: hasBlock ? blockLengths : undefined,
    onUnavailable: values.onUnavailable ?? otherwise.onUnavailable,
    thresholds: values.thresholds ?? (size === 0 ? [] : otherwise.thresholds),
  }
}

/** A list of one is as good as its duration. */
const blockOf = (lengths: readonly number[]): Pick<Limit, 'blockMs' | 'blockLengths'> => ({
  blockMs: lengths.at(-1) ?? 0,
  blockLengths: lengths.length > 1 ? lengths : undefined,
})
