import { isOfOneSubject, type Limit } from '@weir/core/limits/limit.ts'
import { isOfPlan } from '../match/resolve-limits.ts'
import { noOwnLimits, type OwnLimits, type Plan, type Route, type SubjectSettings } from '../policy.ts'
import { isWithinBounds } from './limit-bounds.ts'
import { checkSettings, membersByAlgorithm, settingMembers } from './limit-settings.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'
import { onExceedOfOwn } from './read-on-exceed.ts'
import { type Limits, namesForAll, shared } from './read-plans.ts'
import * as t from './value-types.ts'

const settingKeys = Object.keys(settingMembers)
const membersFor = membersByAlgorithm(settingMembers)
const versionSchema = t.objectSchema(settingMembers, t.implies(t.has('mode', 'shadow'), t.without('block')))

/** Reads the limits of one subject, or with `ofKey` those of a key of that subject over the subject's. */
export type OwnLimitsReader = ReturnType<typeof ownLimitsReader>

/** The `limits` of a subject, with their positions: what a version is of is known when all limits are read. */
export const ownVersions: t.ValueType<Fields> = {
  schema: { type: 'object', additionalProperties: versionSchema },
  read: (reader, at) => reader.map(at, "a map of the subject's overrides, by limit name"),
}

/**
 * Reads the versions of limits that subjects have of their own; only right if no problem was found. Equal ones are one
 * object, however many subjects have them: what is derived from a limit, or from a set of them, is then derived once.
 */
export function ownLimitsReader(limits: Limits, routes: readonly Route[]) {
  const ofRoutes = [...new Set(routes.map((route) => route.limits))].flat()
  /** In reach of subjects of any plan that they apply to: by a route, or because they apply to all. */
  const everybodys = new Set([...namesForAll(limits), ...ofRoutes.map(({ name }) => name)])
  /** By name and settings, from which the rest of a version follows. */
  const versionsKnown = new Map<string, { readonly limit: Limit; readonly id: number }>()
  const sets = new Map([['', noOwnLimits]])
  /** By what the key's subject has, which the key's come before. */
  const setsOfKeys = new WeakMap<OwnLimits, Map<string, OwnLimits>>()

  const readVersion = (reader: PolicyReader, name: string, at: SourcePosition, plan: Plan | undefined) => {
    const limit = limits.get(name)
    if (limit === undefined) {
      if (limits.has(name)) return undefined
      const near = reader.near(name, limits.keys())
      return reader.problemAtKey(at, `there is no limit ${JSON.stringify(name)}${near}`)
    }
    if (plan !== undefined && !isOfPlan(limit, plan.name)) {
      return reader.problemAtKey(at, `does not apply to this subject: ${name} is not for the plan ${plan.name}`)
    }
    if (plan !== undefined && !everybodys.has(name) && plan.limits.every((one) => one.name !== name)) {
      const near = reader.near(name, [...plan.limits.map((one) => one.name), ...everybodys])
      const why = `neither the plan ${plan.name} nor a route lists it, and it does not apply to all`
      return reader.problemAtKey(at, `does not apply to this subject: ${why}${near}`)
    }
    if (!isOfOneSubject(limit.by)) {
      const why = 'it counts several subjects together, so one subject cannot have its own size'
      return reader.problemAtKey(at, `a subject cannot override ${name}: ${why}`)
    }
    const fields = reader.fields(at, "a subject's override of a limit", settingKeys)
    if (fields === undefined) return undefined
    const before = reader.problemCount
    const values = t.readMembers(reader, fields, membersFor(limit.algorithm, limit.currency !== undefined))
    const capacity = limit.capacity === limit.size ? undefined : limit.capacity
    const settings = checkSettings(reader, fields, values, limit, { ...limit, capacity })
    const own = settings === undefined ? undefined : onExceedOfOwn(reader, fields, limit, settings.mode)
    if (reader.problemCount > before || settings === undefined || own === undefined) return undefined
    const text = `${name} ${JSON.stringify(settings)}`
    const known = versionsKnown.get(text)
    if (known !== undefined) return known
    const version = { limit: { ...limit, ...settings, onExceed: own }, id: versionsKnown.size }
    if (!isWithinBounds(reader, at, fields, version.limit)) return undefined
    versionsKnown.set(text, version)
    return version
  }

  return function readOwnLimits(
    reader: PolicyReader,
    versions: Fields,
    plan: Plan | undefined,
    ofKey?: Pick<SubjectSettings, 'ownLimits'>,
  ): OwnLimits {
    const own = new Map<string, Limit>()
    const ids: number[] = []
    for (const [name, at] of versions) {
      const version = readVersion(reader, name, at, plan)
      if (version === undefined) continue
      own.set(name, version.limit)
      ids.push(version.id)
      if (ofKey !== undefined && !version.limit.by.some(({ kind }) => kind === 'key'))
        reader.problemAtKey(at, `${name} does not count by key, so a key cannot have its own size`)
    }
    const text = ids.sort((a, b) => a - b).join(' ')
    if (ofKey === undefined) return shared(sets, text, own)
    const ofOwner = setsOfKeys.get(ofKey.ownLimits) ?? new Map<string, OwnLimits>()
    setsOfKeys.set(ofKey.ownLimits, ofOwner)
    return shared(ofOwner, text, new Map([...ofKey.ownLimits, ...own]))
  }
}
