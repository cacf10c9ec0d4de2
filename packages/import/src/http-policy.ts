import type { JsonObject } from '@weir/policy/entities.ts'
import { parseMatch } from '@weir/policy/reader/read-routes.ts'
import { type ForeignFile, type ImportProblem, isEmpty, type Spot, spotName } from './foreign-file.ts'
import type { ImportedEntry, ImportResult, InputFile } from './imported-policy.ts'
import { LimitNames } from './limit-names.ts'
import { Notes } from './notes.ts'
import { type Entry, openYaml } from './yaml-config.ts'

/** The plan of callers without a key: it has no limits, because routes name them. */
const anonymousPlan = 'everyone'
const unitsMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const

/** Collects limits, routes, notes and problems of the configuration of a gateway that limits requests by path. */
export class HttpPolicy extends Notes {
  readonly #done = new Set<unknown>()
  protected readonly files: readonly InputFile[]
  readonly #problems: ImportProblem[] = []
  readonly #opened: ForeignFile[] = []
  readonly #names = new LimitNames()
  readonly #limits = new Map<string, ImportedEntry>()
  readonly #routes = new Map<string, ImportedEntry>()

  constructor(files: readonly InputFile[]) {
    super()
    this.files = files
  }

  /** The documents of all files, which are YAML. */
  documents(): readonly Entry[] {
    const opened = openYaml(this.files)
    this.#opened.push(...opened.map(({ file }) => file))
    return opened.flatMap(({ documents }) => documents)
  }

  problem({ file, line }: Spot, message: string): undefined {
    this.#problems.push({ file, line, message })
  }

  /** Marks a value of a YAML file as carried over or named; `nameRest` names the others. */
  done(value: Entry): Entry {
    this.#done.add(value.raw)
    return value
  }

  /** Names each field of the files with such a name, wherever it is, that is not done. */
  nameRest(names: RegExp): void {
    for (const file of this.#opened)
      file.eachField((name, value) => {
        if (names.test(name) && !isEmpty(value) && !this.#done.has(value.raw ?? value.node))
          this.lost(value, `${name}: not supported here`)
      })
  }

  /** Adds a limit. Returns its name: the one that is wanted, made valid and unique. */
  limit(wanted: string, spot: Spot, body: JsonObject): string {
    const name = this.#names.take(wanted)
    const isByAddress = Array.isArray(body.by) && body.by.includes('ip')
    if (isByAddress && ![...this.#limits.values()].some((one) => (one.body.by as string[]).includes('ip')))
      this.changed(spot, 'IPv6 addresses are counted per /64, IPv4 addresses one by one')
    this.#limits.set(name, { origin: spotName(spot), body })
    return name
  }

  /** How a limit counts by a header: one that carries a credential is counted by key. */
  byHeader(spot: Spot, name: string): string {
    if (!/^(?:proxy-)?authorization$|^x-api-key$/i.test(name)) return `header:${name.toLowerCase()}`
    const what = `${name} carries a credential: the limit counts by API key, and Weir refuses keys that it does not know`
    this.changed(spot, what, 'Create a key for each caller.')
    return 'key'
  }

  /** Names that routes are for all hosts. */
  anyHost(spot: Spot): void {
    this.changed(spot, 'routes have no host: these apply to every host', 'Import each host separately.')
  }

  /** Adds routes for paths; a note if none can be written so, or if another has the same path and other limits. */
  route(spot: Spot, path: string, limits: readonly string[], methods: readonly string[] = [], isExact = false): void {
    const folder = path.endsWith('/') ? path : `${path}/`
    for (const method of methods.length === 0 ? ['*'] : methods) {
      const match = `${method.toUpperCase()} ${isExact ? path : `${folder}*`}`
      const parsed = /\/[:*].|[{}]/.test(path) ? undefined : parseMatch(match)
      if (parsed === undefined) {
        const what = `${path}: no route can match this; that path has ${limits.join(', ') || 'no limit'}`
        if (limits.length > 0) this.lost(spot, what, 'Write routes for the paths that you need.')
        else this.changed(spot, what)
        return
      }
      const shape = `${parsed.method} ${parsed.path.replace(/(?<=.)\/$/, '')}`
      const known = this.#routes.get(shape)
      if (known === undefined) this.#routes.set(shape, { origin: spotName(spot), body: { match, limits: [...limits] } })
      else if (String(known.body.limits) !== limits.join()) {
        const what = `${match} has different limits at ${known.origin}, but a route has neither host nor header`
        this.lost(spot, what, 'Import each host separately, or choose one set of limits for this path.')
      }
    }
    if (isExact || folder === path) return
    const what = `${path} also matches ${path}x there; the route matches ${path} and the paths below it`
    this.changed(spot, what, 'Write a route for other paths with this prefix, if there are any.')
  }

  /** The outcome. Callers without a key are admitted, as they were. */
  result(plans: JsonObject = {}, subjects: JsonObject = {}): ImportResult {
    const problems = [...this.#problems, ...this.#opened.flatMap((file) => file.problems)]
    if (problems.length > 0) return { kind: 'problems', problems }
    const callers = {
      identity: { anonymous: anonymousPlan },
      plans: { [anonymousPlan]: { limits: [] }, ...plans },
      ...(Object.keys(subjects).length === 0 ? {} : { subjects }),
    }
    const policy = { limits: this.#limits, routes: [...this.#routes.values()], callers }
    return { kind: 'imported', policy, notes: this.inOrderOf(this.files) }
  }
}

/** A whole number of milliseconds as the policy writes durations. */
export function durationText(ms: number): string {
  const [unit, length] = Object.entries(unitsMs).find(([, one]) => ms % one === 0) ?? ['ms', 1]
  return `${ms / length}${unit}`
}
