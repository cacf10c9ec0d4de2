import { parseTimeZone, timeZonePattern } from '@weir/core/calendar/time-zone.ts'
import { type Contact, noOwnLimits, type Route, type Subject, type SubjectSettings } from '../policy.ts'
import { subjectPattern, subjectRule } from '../policy-values.ts'
import { type Level, LevelRules } from './level-rules.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import { contact } from './read-endpoints.ts'
import { KeyRing, keyList } from './read-keys.ts'
import { type OwnLimitsReader, ownLimitsReader, ownVersions } from './read-own-limits.ts'
import { type Limits, type Plans, planName, planOf } from './read-plans.ts'
import { type Prices, pricesName, pricesNamed } from './read-prices.ts'
import { formerBudget } from './remark-on-budgets.ts'
import * as t from './value-types.ts'

/** What a subject refers to. */
export interface Definitions {
  readonly plans: Plans
  readonly limits: Limits
  readonly routes: readonly Route[]
  readonly prices: Prices
}

const reasonLengthMax = 200
const suspensionReason = t.text(
  `a text of 1 to ${reasonLengthMax} characters`,
  (written) => (written.length < 1 || written.length > reasonLengthMax ? undefined : written),
  { minLength: 1, maxLength: reasonLengthMax },
)

const settings = {
  plan: t.required('Name of a plan.', planName),
  timeZone: t.withDefault(
    'Time zone of calendar periods, an IANA name.',
    t.text('an IANA time zone such as Asia/Kathmandu', knownTimeZone, { pattern: timeZonePattern.source }),
    'UTC',
  ),
  anchor: t.withDefault('Day of the month on which months begin.', t.integer(1, 31), 1),
  limits: t.orEmpty("This subject's overrides of limits, by limit name.", ownVersions),
  prices: t.optional("Name of a price list that replaces the plan's.", pricesName),
  budget: formerBudget,
  selfService: t.optional("Whether its keys may read its own usage. Default: the plan's setting.", t.boolean),
  ownAlerts: t.optional(
    "Whether it may set up its own alerts: addresses and percentages. Default: the plan's setting.",
    t.boolean,
  ),
  suspended: t.optional('Suspends the subject; the reason is shown in refusals.', suspensionReason),
  parent: t.optional(
    "Id of the subject above it. The limits of that subject's plan count this subject's requests too.",
    t.matching(subjectRule, subjectPattern),
  ),
  contact: t.optional("The subject's own contact for alerts, used by endpoints of type subject.", contact),
}

/** A subject without its keys, as the admin API accepts it. */
export const subjectSettings = t.object('a subject', settings)
const subject = t.object('a subject', { ...settings, keys: t.orEmpty('API keys, stored as hashes.', keyList) })

/** The section `subjects`. */
export const subjectEntries = t.entries(subject.schema, { plural: 'subjects', one: 'a subject', ids: t.subjectIds })

/** Subjects, and their keys by hash. No hash and no key id occurs twice in a policy, whichever subject has it. */
export function readSubjects(reader: PolicyReader, at: SourcePosition, known: Definitions) {
  const contacts = new Map<string, Contact>()
  const readOwnLimits = ownLimitsReader(known.limits, known.routes)
  const keys = new KeyRing(reader, readOwnLimits)
  const readSettings = subjectReader(known, readOwnLimits)
  const read = new Map<string, ReadSubject>()
  for (const [id, field] of subjectEntries.read(reader, at)) {
    const found = subject.find(reader, field)
    if (found !== undefined) read.set(id, { found, settings: readSettings(reader, found) })
  }
  const subjects = linked(reader, read, known)
  for (const [id, { found }] of read) {
    if (found.values.contact !== undefined) contacts.set(id, found.values.contact)
    if (found.values.keys !== undefined) keys.add(found.values.keys, subjects.get(id))
  }
  return { subjects, keys: keys.byHash, contacts }
}

interface ReadSubject {
  readonly found: t.FoundObject<typeof subject.members>
  readonly settings: SubjectSettings | undefined
}

/** The subjects whose settings are right, each with its parent. */
function linked(
  reader: PolicyReader,
  read: ReadonlyMap<string, ReadSubject>,
  { limits, routes }: Pick<Definitions, 'limits' | 'routes'>,
): ReadonlyMap<string, Subject> {
  const limitsForAll = [...limits.values()].filter((limit) => limit?.applies === 'all')
  const rules = new LevelRules({ limitsForAll: limitsForAll.filter((limit) => limit !== undefined), routes })
  const levelOf = (id: string): Level | undefined => {
    const one = read.get(id)
    return one && { parent: one.found.values.parent, plan: one.settings?.plan }
  }
  const made = new Map<string, Subject>()
  const make = (id: string): Subject | undefined => {
    const { found, settings } = read.get(id) ?? {}
    const known = made.get(id)
    if (known !== undefined || found === undefined || settings === undefined) return known
    const { parent } = found.values
    const whole = parent === undefined ? { id, ...settings } : { id, ...settings, parent: make(parent) }
    made.set(id, whole)
    return whole
  }
  for (const [id, { found, settings }] of read) {
    const [parentAt, parent] = [found.fields.get('parent'), found.values.parent]
    const isKnown = parentAt === undefined || parent === undefined || reader.find(parentAt, 'subject', parent, read)
    const fault = isKnown === undefined ? undefined : rules.faultOf({ parent, plan: settings?.plan }, levelOf)
    if (parentAt !== undefined && fault !== undefined) reader.problem(parentAt, fault)
    else if (isKnown !== undefined) make(id)
  }
  return made
}

/** Reads what subjects say of themselves; equal limits of their own become one object. */
export function subjectReader({ plans, prices: known }: Definitions, readOwnLimits: OwnLimitsReader) {
  return function readSubject(
    reader: PolicyReader,
    { fields, values }: t.FoundObject<typeof settings>,
  ): SubjectSettings | undefined {
    const { timeZone, anchor, selfService, ownAlerts, suspended } = values
    const plan = planOf(reader, fields, values, 'plan', plans)
    const ownLimits = values.limits === undefined ? noOwnLimits : readOwnLimits(reader, values.limits, plan)
    const prices = pricesNamed(reader, fields, values.prices, known)
    if (plan === undefined || timeZone === undefined || anchor === undefined) return undefined
    const service = selfService === undefined ? {} : { selfService }
    const choosing = ownAlerts === undefined ? {} : { ownAlerts }
    const off = suspended === undefined ? {} : { suspended }
    return { plan, timeZone, anchor, ownLimits, ...prices, ...service, ...choosing, ...off }
  }
}

/** Zones asked for, right or wrong; beyond, the keeping starts again. There are some 600. */
const zonesMax = 2_000
const zones = new Map<string, string | undefined>()

/** As `parseTimeZone`, which takes some microseconds, once for each. */
function knownTimeZone(written: string): string | undefined {
  if (zones.has(written)) return zones.get(written)
  if (zones.size >= zonesMax) zones.clear()
  const zone = parseTimeZone(written)
  zones.set(written, zone)
  return zone
}
