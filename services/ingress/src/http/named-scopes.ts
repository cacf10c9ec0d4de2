import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type NamedScopeKind, namedScopeKinds } from '@weir/core/limits/limit.ts'
import type { NamedValues } from '@weir/core/limits/limit-store.ts'
import type { Claims } from '@weir/identity/caller.ts'
import { descriptorMethod } from '@weir/policy/match/match-descriptor.ts'
import { readParameter } from '@weir/policy/match/match-route.ts'
import type { Policy, Route } from '@weir/policy/policy.ts'
import { cookieValue, laxName } from './cookie-value.ts'

/** What an entry point knows of a request. What it leaves out counts as empty. */
export interface ScopeSource {
  readonly route: Route
  /** In its normal form, as the route was matched by; undefined for none. */
  readonly path?: string | undefined
  readonly headers?: IncomingHttpHeaders | undefined
  /** The same as they came. */
  readonly rawHeaders?: readonly string[] | undefined
  /** Path and query as the client sent them. */
  readonly url?: string | undefined
  readonly attributes?: Readonly<Record<string, string | number>> | undefined
  /** Of a verified token. */
  readonly claims?: Claims | undefined
  /** Of a JSON body, by their pointers. */
  readonly body?: ReadonlyMap<string, unknown> | undefined
}

/** Longer values are counted by their hash, so that 10,000 of them can be kept encoded. */
const valueLengthMax = 1_024

/** Names that some limit of the policy counts by. */
export function namesOf(policy: Pick<Policy, 'limits'>, kind: NamedScopeKind): readonly string[] {
  const names = new Set<string>()
  for (const { by } of policy.limits.values()) for (const part of by) if (part.kind === kind) names.add(part.name)
  return [...names]
}

type Read = (source: ScopeSource, values: Map<string, string>) => void

/** Reads what limits count by out of a request. Undefined without a look at it when no limit counts by a name. */
export function createScopeReader(
  policy: Pick<Policy, 'limits' | 'routes'>,
): (source: ScopeSource) => NamedValues | undefined {
  const readers = namedScopeKinds.flatMap((kind) => {
    const names = namesOf(policy, kind)
    return names.length === 0 ? [] : [readersOf[kind](names, policy.routes)]
  })
  if (readers.length === 0) return () => undefined
  return function readScopes(source) {
    const values = new Map<string, string>()
    for (const read of readers) read(source, values)
    return values
  }
}

const readersOf: Readonly<Record<NamedScopeKind, (names: readonly string[], routes: readonly Route[]) => Read>> = {
  /** Headers as Node joins them. One that came twice is empty: upstreams take the first, the last, or both. */
  header:
    (names) =>
    ({ headers, rawHeaders = [] }, values) => {
      for (const name of names) {
        const value = headers?.[name]
        if (value === undefined) continue
        const text = Array.isArray(value) ? value.join(', ') : value
        const isOne = !text.includes(',') || rawHeaders.filter(isNameOf(name)).length < 2
        values.set(`header:${name}`, isOne ? text : '')
      }
    },
  /**
   * Query parameters. One that is there twice by any server's reading is empty, as in bodies: upstreams differ in which
   * of them counts. A `;` separates as `&` does, because some take it for that.
   */
  query:
    (names) =>
    ({ url = '' }, values) => {
      const queryAt = url.indexOf('?')
      if (queryAt === -1) return
      const text = url.slice(queryAt + 1)
      const query = new URLSearchParams(text.replaceAll(';', '&'))
      const found = [...query.keys()].map(laxName)
      for (const name of names) {
        const isOne = found.indexOf(laxName(name)) === found.lastIndexOf(laxName(name))
        values.set(`query:${name}`, isOne ? (query.get(name) ?? '') : '')
      }
    },
  attribute:
    (names) =>
    ({ attributes = {} }, values) => {
      for (const name of names)
        if (Object.hasOwn(attributes, name)) values.set(`attribute:${name}`, `${attributes[name]}`)
    },
  path: pathReader,
  /** A list or an object is no value: which of its parts would be counted? */
  claim:
    (names) =>
    ({ claims = {} }, values) => {
      for (const name of names) {
        const value = Object.hasOwn(claims, name) ? claims[name] : undefined
        if (isScalar(value)) values.set(`claim:${name}`, bounded(`${value}`))
      }
    },
  /** Cookies are credentials: only their hash leaves this function. */
  cookie:
    (names) =>
    ({ headers }, values) => {
      const { cookie = '' } = headers ?? {}
      for (const name of names) {
        const value = cookieValue(cookie, name)
        if (value !== undefined && value !== '') values.set(`cookie:${name}`, hash('sha256', value, 'base64url'))
      }
    },
  /** As of claims, a list or an object is no value. */
  body:
    () =>
    ({ body = [] }, values) => {
      for (const [pointer, value] of body) if (isScalar(value)) values.set(`body:${pointer}`, bounded(`${value}`))
    },
}

/** Names and values take turns. */
const isNameOf = (name: string) => (text: string, at: number) => at % 2 === 0 && text.toLowerCase() === name

/** Segments of the path, decoded: `%40` and `@` are one value. Descriptors have attributes instead. */
function pathReader(names: readonly string[], routes: readonly Route[]): Read {
  const positions = new Map<Route, readonly (readonly [scope: string, segment: number, verb: number])[]>()
  for (const route of routes) {
    if (route.method === descriptorMethod) continue
    const found = route.path.split('/').flatMap((segment, at) => {
      const { name = '', verb = '' } = readParameter(segment) ?? {}
      // A verb is as long decoded as it is written.
      return names.includes(name) ? [[`path:${name}`, at, verb === '' ? 0 : verb.length + 1] as const] : []
    })
    if (found.length > 0) positions.set(route, found)
  }
  return ({ route, path }, values) => {
    const found = path === undefined ? undefined : positions.get(route)
    if (found === undefined) return
    const segments = path?.split('/') ?? []
    for (const [scope, at, verb] of found) {
      const text = decodeURIComponent(segments[at] ?? '')
      values.set(scope, bounded(text.slice(0, text.length - verb)))
    }
  }
}

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

const bounded = (text: string) => (text.length <= valueLengthMax ? text : hash('sha256', text, 'base64url'))
