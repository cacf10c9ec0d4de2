import type { JsonObject } from '@weir/policy/entities.ts'
import { parseName } from '@weir/policy/policy-values.ts'
import { parseMatch } from '@weir/policy/reader/read-routes.ts'
import { type Spot, spotName } from './foreign-file.ts'
import type { ImportedEntry, ImportedPolicy, ImportNote, ImportResult, InputFile } from './imported-policy.ts'

/** The plan of callers without a key: it has no limits, because routes name them. */
const anonymousPlan = 'everyone'
const limitNameLengthMax = 64
/** These name policies of their own in the RateLimit fields. */
const reserved = ['unauthenticated', 'unlimited']

interface WrittenRoute extends ImportedEntry, Spot {
  readonly limits: readonly string[]
}

/** Collects limits, routes and notes from the configuration of a gateway that limits requests by their path. */
export class HttpPolicy {
  readonly #notes: ImportNote[] = []
  readonly #said = new Set<string>()
  readonly #limits = new Map<string, ImportedEntry>()
  readonly #routes = new Map<string, WrittenRoute>()
  #hasAddresses = false

  /** Adds a note; a second one of the same words and line is none. */
  note(spot: Spot, kind: ImportNote['kind'], what: string, advice: string): void {
    const said = `${spot.file}:${spot.line} ${what}`
    if (!this.#said.has(said)) this.#notes.push({ file: spot.file, line: spot.line, kind, what, advice })
    this.#said.add(said)
  }

  /** Adds a limit. Returns its name: the one that is wanted, made valid and unique. */
  limit(wanted: string, spot: Spot, body: JsonObject): string {
    const plain = wanted.replaceAll(/[^\w.-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '')
    const isFree = (name: string) =>
      parseName(name) !== undefined && !this.#limits.has(name) && !reserved.includes(name)
    let name = plain.slice(0, limitNameLengthMax)
    for (let count = 1; !isFree(name); count += 1)
      name = `${(plain || 'limit').slice(0, limitNameLengthMax - 6)}-${count}`
    this.#limits.set(name, { origin: spotName(spot), body })
    if (!this.#hasAddresses && Array.isArray(body.by) && body.by.includes('ip')) {
      this.#hasAddresses = true
      this.note(
        spot,
        'changed',
        'IPv6 addresses are counted by their /64, each IPv4 address by itself',
        'Nothing, usually.',
      )
    }
    return name
  }

  /** Adds a route; a note instead if none can be written so, or if another has the same path and other limits. */
  route(method: string, path: string, limits: readonly string[], spot: Spot): void {
    const match = `${method} ${path}`
    const parsed = /\/[:*].|[{}]/.test(path) ? undefined : parseMatch(match)
    if (parsed === undefined) {
      this.note(spot, 'lost', `${match}: no route can be written so`, 'Write a route for the paths that are meant.')
      return
    }
    const shape = `${parsed.method} ${parsed.path.replace(/(?<=.)\/$/, '')}`
    const known = this.#routes.get(shape)
    if (known === undefined) {
      const body = { match, limits: [...limits] }
      this.#routes.set(shape, { file: spot.file, line: spot.line, origin: spotName(spot), body, limits })
    } else if (known.limits.join() !== limits.join()) {
      const what = `${match} has other limits at ${spotName(known)}, and a route knows neither host nor header`
      this.note(spot, 'lost', what, 'Import each host by itself, or choose the limits of this path.')
    }
  }

  /** Adds routes for all paths that begin with this text; a note where a whole segment has to. */
  prefix(methods: readonly string[], path: string, limits: readonly string[], spot: Spot): void {
    const folder = path.endsWith('/') ? path : `${path}/`
    for (const method of methods) this.route(method, `${folder}*`, limits, spot)
    if (folder === path) return
    const what = `${path} begins ${path}x there too; the route is for ${path} and what is below it`
    this.note(spot, 'changed', what, 'Write a route for other paths that begin so, if there are any.')
  }

  /** The outcome, with notes in the order of files and lines. Callers without a key are admitted, as they were. */
  result(files: readonly InputFile[], sections: JsonObject = {}): ImportResult {
    const places = new Map(files.map(({ name }, at) => [name, at]))
    const placeOf = ({ file }: Spot) => places.get(file) ?? 0
    const notes = this.#notes.toSorted((a, b) => placeOf(a) - placeOf(b) || a.line - b.line)
    const { plans = {}, ...rest } = sections
    const callers = {
      identity: { anonymous: anonymousPlan },
      plans: { [anonymousPlan]: { limits: [] }, ...(plans as JsonObject) },
      ...rest,
    }
    const policy: ImportedPolicy = { limits: this.#limits, routes: [...this.#routes.values()], callers }
    return { kind: 'imported', policy, notes }
  }
}

/** A whole number of milliseconds as the policy writes durations. */
export function durationText(ms: number): string {
  for (const [unit, length] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
  ] as const) {
    if (ms % length === 0) return `${ms / length}${unit}`
  }
  return `${ms}ms`
}

/** How a limit counts by a header: one that carries a credential is counted by key. */
export const byHeader = (name: string): string =>
  /^(?:proxy-)?authorization$|^x-api-key$/i.test(name) ? 'key' : `header:${name.toLowerCase()}`
