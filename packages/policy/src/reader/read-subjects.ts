import type { ApiKey, Plan, Route, Subject } from '../policy.ts'
import { parseSubjectId, parseTimeZone, subjectRule } from '../policy-values.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'
import { KeyRing } from './read-keys.ts'
import type { Limits } from './read-limits.ts'
import { OwnLimitsReader } from './read-own-limits.ts'
import { readPlanName } from './read-plan-name.ts'

interface Identities {
  readonly subjects: Map<string, Subject>
  /** By hash. */
  readonly keys: Map<string, ApiKey>
}

/** What a subject refers to. */
export interface Definitions {
  readonly plans: ReadonlyMap<string, Plan | undefined>
  readonly limits: Limits
  readonly routes: readonly Route[]
}

/** All of a subject but who it is. */
export type SubjectSettings = Omit<Subject, 'id'>

/** Subjects and their keys. No hash and no key id occurs twice in a policy, whoever has it. */
export function readSubjects(reader: PolicyReader, place: Place, known: Definitions): Identities {
  const subjects = new Map<string, Subject>()
  const keys = new KeyRing(reader)
  const settingsReader = new SubjectReader(known)
  for (const [id, field] of reader.map(place, 'a map of subjects by id') ?? []) {
    if (parseSubjectId(id) === undefined) reader.problemAtKey(field, `the id of a subject must be ${subjectRule}`)
    const fields = reader.fields(field, 'a subject', [...subjectKeys, 'keys'], ['plan'])
    if (fields === undefined) continue
    const settings = settingsReader.read(reader, fields)
    const subject = settings === undefined ? undefined : { id, ...settings }
    if (subject !== undefined) subjects.set(id, subject)
    keys.read(fields.get('keys'), subject)
  }
  return { subjects, keys: keys.byHash }
}

/** What a subject may say of itself beside its keys. */
export const subjectKeys = ['plan', 'timeZone', 'anchor', 'limits']

/** Reads what subjects say of themselves; equal limits of their own become one object. */
export class SubjectReader {
  readonly #plans: ReadonlyMap<string, Plan | undefined>
  readonly #own: OwnLimitsReader

  constructor({ plans, limits, routes }: Definitions) {
    this.#plans = plans
    this.#own = new OwnLimitsReader(limits, routes)
  }

  read(reader: PolicyReader, fields: ReadonlyMap<string, Field>): SubjectSettings | undefined {
    const timeZoneAt = fields.get('timeZone')
    const rule = 'an IANA time zone such as Asia/Kathmandu'
    const timeZone = timeZoneAt === undefined ? 'UTC' : reader.text(timeZoneAt, rule, knownTimeZone)
    const anchorAt = fields.get('anchor')
    const anchor = anchorAt === undefined ? 1 : reader.integer(anchorAt, 1, 31)
    const planAt = fields.get('plan')
    const plan = planAt === undefined ? undefined : readPlanName(reader, planAt, this.#plans)
    const ownLimits = this.#own.read(reader, fields.get('limits'), plan)
    const isRight = plan !== undefined && timeZone !== undefined && anchor !== undefined && ownLimits !== undefined
    return isRight ? { plan, timeZone, anchor, ownLimits } : undefined
  }
}

/** Zones asked for, right or wrong; beyond, the keeping starts again. There are some 600. */
const zonesMax = 2_000
const zones = new Map<string, string | undefined>()

/** As `parseTimeZone`, which takes some microseconds, once for each. */
function knownTimeZone(text: string): string | undefined {
  if (zones.has(text)) return zones.get(text)
  if (zones.size >= zonesMax) zones.clear()
  const zone = parseTimeZone(text)
  zones.set(text, zone)
  return zone
}
