import { definedFields } from '@weir/core/defined-fields.ts'
import {
  type AlgorithmFact,
  algorithmFacts,
  algorithmsWith,
  countsInFlight,
} from '@weir/core/limits/algorithm-facts.ts'
import {
  algorithms,
  isOfOneSubject,
  type Limit,
  limitsPerDecisionMax,
  periodUnits,
  type ScopePart,
  type Span,
  type Threshold,
  unitPattern,
} from '@weir/core/limits/limit.ts'
import { type CountedParameters, parametersOf } from './check-parameters.ts'
import { isWithinBounds, slidingLogSizeMax } from './limit-bounds.ts'
import { checkSettings, membersByAlgorithm, money, settingMembers, unitsMax } from './limit-settings.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'
import { checkOnExceed, onExceed } from './read-on-exceed.ts'
import { type Limits, limitName, planName } from './read-plans.ts'
import type { RateCards } from './read-rate-cards.ts'
import { refusalMembers, refusalsOf } from './read-refusal.ts'
import { scopes } from './read-scope.ts'
import * as t from './value-types.ts'

const leaky = 'a leaky bucket is a token_bucket with `burst: 1`; add `onExceed: delay` to queue requests'
/** What other programs and textbooks call the algorithms. */
const otherNames = new Map([
  ['leakybucket', leaky],
  ['leaky', leaky],
  ['throttle', leaky],
  ['gcra', 'token_bucket is the GCRA'],
  ['fixed', 'write fixed_window'],
  ['fixedwindowcounter', 'write fixed_window'],
  ['counter', 'write fixed_window'],
  ['sliding', 'write sliding_window, or sliding_log where it must be exact'],
  ['slidingwindowcounter', 'write sliding_window'],
  ['rollingwindow', 'write sliding_window, or sliding_log where it must be exact'],
  ['slidingwindowlog', 'write sliding_log'],
  ['log', 'write sliding_log'],
  ['quota', 'a quota is a fixed_window with `period: day`, week or month'],
  ['semaphore', 'write concurrency'],
  ['inflight', 'write concurrency'],
])

/** Undefined for all that a request may use. */
const holdOf = (quantity: t.ValueType<number>): t.ValueType<{ readonly most: number | undefined }> => ({
  schema: { oneOf: [{ enum: ['bound', 'none'] }, t.integer(1, unitsMax).schema, money.schema] },
  read(reader, at) {
    const written = reader.scalar(at)
    if (typeof written === 'number' || /^\d/.test(String(written))) {
      const most = quantity.read(reader, at)
      return most === undefined ? undefined : { most }
    }
    const word = reader.oneOf(at, ['bound', 'none'])
    return word === undefined ? undefined : { most: word === 'none' ? 1 : undefined }
  },
})
const holds = { units: holdOf(t.integer(1, unitsMax)), money: holdOf(money) }

const members = {
  algorithm: t.required('docs/limits.md compares the algorithms.', t.oneOf(algorithms, otherNames)),
  ...settingMembers,
  size: { ...settingMembers.size, isRequired: true },
  // Shorter, and a window is over before Redis has answered; longer is a calendar's business.
  window: t.optional('Length of the window: 100ms to 366d.', t.duration('100ms', '366d')),
  period: t.optional("fixed_window only: a calendar period in the subject's time zone.", t.oneOf(periodUnits)),
  // Shorter, and a check over gRPC is hardly answered; longer, and a slot that is lost is missed for too long.
  expires: t.optional(
    'concurrency only: how long a slot lasts if nothing renews or releases it: 5s to 12h. Default: 5m.',
    t.duration('5s', '12h'),
  ),
  unit: t.optional(
    'requests: counts each request as 1, regardless of its cost. The name of a rate card: money. Any other name: what checks say in `units`, such as tokens. Default: cost; always requests for concurrency.',
    t.matching(
      'cost, requests, or a name of up to 64 characters from a-z, 0-9 and _',
      new RegExp(`^(?:cost|requests)$|${unitPattern}`),
    ),
  ),
  hold: t.optional(
    'What a request holds of the unit until it is settled: `bound`, all that it may use; a number, at most so much; `none`, one unit. Default: bound.',
    holds.units,
  ),
  by: t.withDefault('What gets a separate count. Default: [subject].', scopes, [{ kind: 'subject' }]),
  applies: t.withDefault('all: applies to every subject, in addition to its plan.', t.oneOf(['plan', 'all']), 'plan'),
  plans: t.optional(
    'Names of plans. Restricts a limit of a route, or one with `applies: all`, to their subjects.',
    t.list('a list of plans by name', t.located(planName), {
      min: 1,
      wrongCount: () => 'names no plan; remove `plans` to apply the limit to all plans',
      nameOf: ({ value }) => value,
    }),
  ),
  onExceed: t.withDefault('What happens to a request that exceeds the limit. Default: deny.', onExceed, {
    kind: 'deny',
  }),
  lease: t.optional('fixed_window only: units that a process reserves in advance.', t.integer(1, unitsMax)),
  clientLease: t.optional(
    'token_bucket only: applications may take its units ahead, where the plan lets them. A burst may then be longer by what flows back meanwhile. Default: false.',
    t.boolean,
  ),
  record: t.withDefault(
    'Whether decision records store the values that the limit counts by in plain text or as a hash. Default: hash.',
    t.oneOf(['plain', 'hash']),
    'hash',
  ),
  forecast: t.withDefault(
    'Raises an alert if, at the current rate, a daily, weekly or monthly quota runs out before its period ends. Default: false.',
    t.boolean,
    false,
  ),
  replaces: t.optional(
    'Names of limits that this one replaces on the requests it applies to.',
    t.list('a list of limits by name', limitName),
  ),
  ...refusalMembers,
  ...t.publicTexts,
  // Shorter, and people stop reading; longer is never.
  cooldown: t.optional(
    'Limits with a `window`: the least time between similar alerts: 10s to 31d.',
    t.duration('10s', '31d'),
  ),
}
const keys = Object.keys(members)
const membersFor = membersByAlgorithm(members, { ...members, hold: { ...members.hold, type: holds.money } })

/** A shorter period is over before anybody reads an alert. */
const forecastUnits: readonly string[] = ['day', 'week', 'month']

const hasAlgorithm = (fact: AlgorithmFact) => ({
  required: ['algorithm'],
  properties: { algorithm: { enum: algorithmsWith(fact) } },
})
const isFixed = hasAlgorithm('resetsAtOnce')
const isInFlight = hasAlgorithm('countsInFlight')
const delays = { enum: ['delay', 'degrade'] }
const schema = t.objectSchema(members, {
  allOf: [
    t.implies(isFixed, { oneOf: [t.has('window'), t.has('period')] }),
    t.implies(
      { not: { anyOf: [isFixed, isInFlight] } },
      { required: ['window'], properties: { period: false, lease: false, size: { minimum: 1 } } },
    ),
    t.implies(isInFlight, t.without('window', 'period', 'lease')),
    t.implies(isInFlight, {
      properties: { size: { minimum: 1 }, unit: { const: 'requests' }, onUnavailable: { enum: ['allow', 'deny'] } },
    }),
    t.implies({ not: isInFlight }, t.without('expires')),
    t.implies({ not: hasAlgorithm('hasBurst') }, t.without('burst', 'clientLease')),
    t.implies(hasAlgorithm('keepsEachUnit'), { properties: { size: { maximum: slidingLogSizeMax } } }),
    t.implies({ ...t.has('window'), not: t.has('cooldown') }, { properties: { thresholds: { maxItems: 0 } } }),
    t.implies(t.has('lease'), t.without('block')),
    t.implies({ ...t.has('unit'), not: t.has('unit', 'cost') }, t.without('lease')),
    t.implies(t.has('mode', 'shadow'), { properties: { block: false, onExceed: { const: 'deny' } } }),
    t.implies(t.has('onExceed', 'block'), t.has('block')),
    t.implies(
      { ...t.has('onExceed'), properties: { onExceed: { anyOf: [delays, { type: 'object', ...t.has('delay') }] } } },
      t.without('block', 'lease'),
    ),
    t.implies({ required: ['period', 'by'] }, { properties: { by: { contains: { enum: ['subject', 'key'] } } } }),
    t.implies(t.has('period'), t.without('cooldown')),
    t.implies(t.has('forecast'), { properties: { period: { enum: forecastUnits } }, required: ['period'] }),
  ],
})

/** The section `limits`. */
export const limitEntries = t.entries(schema, {
  plural: 'limits',
  one: 'a limit',
  // These name policies of their own in the RateLimit fields.
  reserved: { names: ['unauthenticated', 'unlimited'], message: 'this name is reserved for the RateLimit fields' },
})

/** What limits name that is read after them. */
export interface LimitReferences {
  readonly rateCards: RateCards
  readonly counted: CountedParameters[]
  readonly plans: t.Located<string>[]
}

interface References extends Pick<LimitReferences, 'plans' | 'rateCards'> {
  readonly replacing: Replacing[]
}

/** What a limit replaces, with where it says so. */
interface Replacing {
  /** The limit's own. */
  readonly name: string
  readonly replaced: readonly t.Located<string>[]
}

/**
 * Reads the limits. One that is as it was in `before` is the same object, so that what is cached by a limit stays.
 * What they refer to is added to the references: whether there are such routes and plans is known later.
 */
export function readLimits(
  reader: PolicyReader,
  at: SourcePosition,
  before: ReadonlyMap<string, Limit>,
  { counted, plans, rateCards }: LimitReferences,
): Limits {
  const replacing: Replacing[] = []
  let forAll = 0
  const limits = limitEntries.each(reader, at, (name, field) => {
    const limit = sameAs(before.get(name), readLimit(reader, name, field, { replacing, plans, rateCards }))
    const parameters = parametersOf(limit)
    const byAt = parameters.length === 0 ? undefined : reader.map(field, 'a limit')?.get('by')
    if (byAt !== undefined) counted.push({ at: byAt, parameters })
    if (limit?.applies === 'all') forAll += 1
    if (limit?.applies === 'all' && forAll > limitsPerDecisionMax) {
      const most = `a decision can have at most ${limitsPerDecisionMax}`
      reader.problemAtKey(field, `is the ${forAll}th limit with \`applies: all\`; ${most}`)
    }
    return limit
  })
  checkReplaced(reader, limits, replacing)
  return limits
}

const sameAs = (before: Limit | undefined, limit: Limit | undefined): Limit | undefined =>
  before !== undefined && JSON.stringify(before) === JSON.stringify(limit) ? before : limit

function readLimit(reader: PolicyReader, name: string, at: SourcePosition, references: References): Limit | undefined {
  const fields = reader.fields(at, 'a limit', keys, ['algorithm', 'size'])
  if (fields === undefined) return undefined
  const before = reader.problemCount
  const algorithmAt = fields.get('algorithm')
  const written = algorithmAt === undefined ? undefined : reader.scalar(algorithmAt)
  const known = algorithms.find((one) => one === written)
  const unitAt = fields.get('unit')
  const card = unitAt === undefined ? undefined : references.rateCards.get(String(reader.scalar(unitAt)))
  if (card !== undefined && known !== undefined) checkMoney(reader, fields, known)
  const values = t.readMembers(reader, fields, membersFor(known, card !== undefined))
  const { algorithm, by = [], applies, cooldown: cooldownMs = 0, onExceed: exceed, lease = 0, replaces = [] } = values
  const { plans = [] } = values
  const isOfSlots = algorithm !== undefined && countsInFlight({ algorithm })
  const span = isOfSlots ? slotSpan(reader, fields, values) : readSpan(reader, at, fields, values)
  checkPeriod(reader, fields, by, span)
  const settings = checkSettings(
    reader,
    fields,
    values,
    { algorithm, span, cooldownMs },
    {
      size: undefined,
      capacity: undefined,
      mode: 'enforce',
      blockMs: 0,
      onUnavailable: isOfSlots ? 'allow' : card !== undefined ? 'deny' : 'local',
      thresholds: defaultThresholds(span),
    },
  )
  references.plans.push(...plans)
  if (replaces.length > 0) references.replacing.push({ name, replaced: replaces })
  if (span !== undefined && !(span.kind === 'period' && forecastUnits.includes(span.unit))) {
    reader.refuseKey(fields, 'forecast', 'only a limit with `period: day`, `week` or `month` can have a `forecast`')
  }
  if (lease > 0) checkLease(reader, fields, algorithm)
  if (algorithm !== undefined && !algorithmFacts[algorithm].hasBurst)
    reader.refuseKey(
      fields,
      'clientLease',
      `only a ${algorithmsWith('hasBurst')} needs \`clientLease\` of its own; remove it`,
    )
  const unit = isOfSlots ? 'requests' : values.unit === 'cost' ? undefined : values.unit
  if (lease > 0 && unit !== undefined && !isOfSlots)
    reader.refuseKey(fields, 'lease', `conflicts with \`unit: ${unit}\``)
  if (unit === undefined || unit === 'requests')
    reader.refuseKey(fields, 'hold', 'needs a `unit` of which a request says how much it may use, such as tokens')
  if (exceed !== undefined) checkOnExceed(reader, fields, exceed)
  if (reader.problemCount > before || algorithm === undefined || span === undefined) return undefined
  if (applies === undefined || settings === undefined || exceed === undefined) return undefined
  const limit: Limit = {
    name,
    algorithm,
    span,
    by,
    applies,
    lease,
    cooldownMs,
    onExceed: exceed,
    ...settings,
    ...(values.record === 'plain' ? { record: 'plain' as const } : {}),
    ...(values.clientLease === true ? { clientLease: true as const } : {}),
    ...(values.forecast === true ? { forecast: true as const } : {}),
    ...refusalsOf(reader, fields, values),
    ...definedFields({
      unit,
      currency: card?.currency,
      hold: values.hold?.most,
      title: values.title,
      about: values.about,
    }),
    ...(plans.length === 0 ? {} : { plans: plans.map(({ value }) => value) }),
    ...(replaces.length === 0 ? {} : { replaces: replaces.map(({ value }) => value) }),
  }
  return isWithinBounds(reader, at, fields, limit) ? limit : undefined
}

/** A bucket and a log count at most some million units: less than a cent. */
function checkMoney(reader: PolicyReader, fields: Fields, algorithm: Limit['algorithm']): void {
  const at = fields.get('algorithm')
  if (at !== undefined && !moneyAlgorithms.includes(algorithm)) {
    reader.problem(at, `a ${algorithm} cannot count money; use a ${moneyAlgorithms.join(' or a ')}`)
  }
  const onUnavailable = fields.get('onUnavailable')
  if (onUnavailable !== undefined && reader.scalar(onUnavailable) === 'local')
    reader.problem(onUnavailable, 'must be allow or deny: what is held cannot be shared out among processes')
}
const moneyAlgorithms: readonly Limit['algorithm'][] = ['fixed_window', 'sliding_window']

const slotMsDefault = 300_000

/** How long a slot lasts. */
function slotSpan(reader: PolicyReader, fields: Fields, { expires, unit }: t.FoundValues<typeof members>): Span {
  const instead = 'a concurrency limit counts requests in flight'
  for (const key of ['window', 'period']) reader.refuseKey(fields, key, `${instead}; remove it`)
  const unitAt = fields.get('unit')
  if (unit !== undefined && unit !== 'requests' && unitAt !== undefined)
    reader.problem(unitAt, `must be requests: ${instead}`)
  return { kind: 'window', ms: expires ?? slotMsDefault }
}

/** The length of time or the calendar period that a limit is counted over. */
function readSpan(
  reader: PolicyReader,
  at: SourcePosition,
  fields: Fields,
  { algorithm, window: ms, period: unit }: t.FoundValues<typeof members>,
): Span | undefined {
  const [window, period] = [fields.get('window'), fields.get('period')]
  reader.refuseKey(fields, 'expires', `only a ${algorithmsWith('countsInFlight')} limit has \`expires\``)
  if (window !== undefined && period !== undefined) {
    const note = reader.lineNote(window)
    return reader.problemAtKey(period, `conflicts with \`window\`${note}; a limit supports only one of them`)
  }
  if (window !== undefined) return ms === undefined ? undefined : { kind: 'window', ms }
  const mayHavePeriod = algorithm === undefined || algorithmFacts[algorithm].resetsAtOnce
  if (period === undefined) {
    return reader.problemAtKey(at, mayHavePeriod ? 'needs `window` or `period`' : 'needs `window`')
  }
  if (mayHavePeriod) return unit === undefined ? undefined : { kind: 'period', unit }
  return reader.problemAtKey(
    period,
    `only a ${algorithmsWith('resetsAtOnce')} has a calendar \`period\`; a ${algorithm} has a \`window\``,
  )
}

function checkPeriod(reader: PolicyReader, fields: Fields, by: readonly ScopePart[], span: Span | undefined): void {
  if (span?.kind !== 'period') return
  const byAt = fields.get('by')
  if (byAt !== undefined && by.length > 0 && !isOfOneSubject(by)) {
    const why = "a calendar period needs one subject, because it uses the subject's time zone"
    reader.problem(byAt, `${why}; add subject or key to \`by\``)
  }
  const why = 'only a limit with a `window` can have a `cooldown`'
  reader.refuseKey(fields, 'cooldown', `a limit with a \`period\` alerts once per period; ${why}`)
}

function checkLease(reader: PolicyReader, fields: Fields, algorithm: Limit['algorithm'] | undefined): void {
  const block = fields.get('block')
  if (algorithm === undefined) return
  if (!algorithmFacts[algorithm].resetsAtOnce) {
    const why = `a ${algorithm} limit counts every unit when it is used`
    reader.refuseKey(fields, 'lease', `only a ${algorithmsWith('resetsAtOnce')} can have a \`lease\`: ${why}`)
  } else if (block !== undefined) {
    const why = 'a process with leased units would admit blocked subjects'
    reader.refuseKey(fields, 'lease', `conflicts with \`block\`${reader.lineNote(block)}: ${why}`)
  }
}

/**
 * Adds a problem for every name that is no limit's, that is the limit's own, or whose limit replaces others itself:
 * with chains two limits could replace each other, and neither would apply.
 */
function checkReplaced(reader: PolicyReader, limits: Limits, replacing: readonly Replacing[]): void {
  const theirs = new Set(replacing.map(({ name }) => name))
  for (const { name: own, replaced } of replacing) {
    for (const { value: name, at } of replaced) {
      reader.find(at, 'limit', name, limits)
      if (name === own) reader.problem(at, 'a limit cannot replace itself')
      else if (theirs.has(name)) {
        const instead = 'list the limits that it replaces here too; a listed limit cannot replace others'
        reader.problem(at, `${name} replaces limits itself; ${instead}`)
      }
    }
  }
}

/** A quota of a day or longer alerts before it is used up; for shorter ones that would only be noise. */
function defaultThresholds(span: Span | undefined): readonly Threshold[] {
  const isLong = span?.kind === 'period' && ['day', 'week', 'month'].includes(span.unit)
  return isLong ? [{ percent: 80 }, { percent: 100 }] : []
}
