import { isOfOneSubject, type Limit } from '@weir/core/limits/limit.ts'
import { noOwnLimits, type OwnLimits, type Plan, type Route } from '../policy.ts'
import { isWithinBounds } from './limit-bounds.ts'
import { readSettings, settingKeys } from './limit-settings.ts'
import type { Field, PolicyReader } from './policy-reader.ts'
import { namesForAll } from './read-limit-names.ts'
import type { Limits } from './read-limits.ts'
import { onExceedOfOwn } from './read-on-exceed.ts'

/**
 * Reads the versions of limits that subjects have of their own. Equal ones are one object, however many subjects have
 * them: what is derived from a limit, or from a set of them, is then derived once.
 */
export class OwnLimitsReader {
  readonly #limits: Limits
  /** In reach of every subject: by a route, or because they apply to all. */
  readonly #everybodys: ReadonlySet<string>
  readonly #versions = new Map<string, { readonly limit: Limit; readonly id: number }>()
  readonly #sets = new Map<string, OwnLimits>()

  constructor(limits: Limits, routes: readonly Route[]) {
    this.#limits = limits
    const ofRoutes = [...new Set(routes.map((route) => route.limits))].flat()
    this.#everybodys = new Set([...namesForAll(limits), ...ofRoutes.map(({ name }) => name)])
  }

  /** The `limits` of a subject; undefined when something in them is wrong. */
  read(reader: PolicyReader, place: Field | undefined, plan: Plan | undefined): OwnLimits | undefined {
    if (place === undefined || reader.isEmpty(place)) return noOwnLimits
    const fields = reader.map(place, "a map of the subject's own versions of limits, by their names")
    if (fields === undefined) return undefined
    const own = new Map<string, Limit>()
    const ids: number[] = []
    let wrong = false
    for (const [name, field] of fields) {
      const version = this.#readVersion(reader, name, field, plan)
      if (version === undefined) wrong = true
      else {
        own.set(name, version.limit)
        ids.push(version.id)
      }
    }
    return wrong ? undefined : this.#shared(own, ids)
  }

  #readVersion(reader: PolicyReader, name: string, place: Field, plan: Plan | undefined) {
    const limit = this.#limits.get(name)
    if (limit === undefined) {
      if (this.#limits.has(name)) return undefined
      return reader.problemAtKey(
        place,
        `there is no limit ${JSON.stringify(name)}${reader.near(name, this.#limits.keys())}`,
      )
    }
    if (plan !== undefined && !this.#isInReach(name, plan)) {
      const near = reader.near(name, [...plan.limits.map((one) => one.name), ...this.#everybodys])
      const why = `neither the plan ${plan.name} nor a route names it, and it does not apply to all`
      return reader.problemAtKey(place, `never applies to this subject: ${why}${near}`)
    }
    if (!isOfOneSubject(limit.by)) {
      const why = 'it counts several subjects together, and one count cannot have two sizes'
      return reader.problemAtKey(place, `a subject cannot have its own version of ${name}: ${why}`)
    }
    const fields = reader.fields(place, "a subject's own version of a limit", settingKeys, [])
    if (fields === undefined) return undefined
    const capacity = limit.capacity === limit.size ? undefined : limit.capacity
    const settings = readSettings(reader, fields, limit, { ...limit, capacity })
    if (settings === undefined) return undefined
    const own = onExceedOfOwn(reader, fields, limit, settings.mode)
    if (own === undefined) return undefined
    const version: Limit = { ...limit, ...settings, onExceed: own }
    return isWithinBounds(reader, place, fields, version) ? this.#sharedVersion(version) : undefined
  }

  #isInReach(name: string, plan: Plan): boolean {
    return this.#everybodys.has(name) || plan.limits.some((limit) => limit.name === name)
  }

  #sharedVersion(limit: Limit) {
    const text = JSON.stringify(limit)
    const known = this.#versions.get(text)
    if (known !== undefined) return known
    const version = { limit, id: this.#versions.size }
    this.#versions.set(text, version)
    return version
  }

  #shared(own: OwnLimits, ids: readonly number[]): OwnLimits {
    if (own.size === 0) return noOwnLimits
    const text = ids.toSorted((a, b) => a - b).join(' ')
    const known = this.#sets.get(text)
    if (known === undefined) this.#sets.set(text, own)
    return known ?? own
  }
}
