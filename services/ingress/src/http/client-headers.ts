import type { Policy } from '@weir/policy/policy.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import { namesOf } from './named-scopes.ts'

// Headers of a client that no upstream gets, in lower case with hyphens. The proxy drops them, and so does every file
// of docs/integrations, which test/repo compares with `overrides`, `proxyWords`, `words` and the prefixes.

/** With these a framework serves another method or path than the one that was decided. */
export const overrides = [
  ...['x-http-method-override', 'x-http-method', 'x-method-override', 'x-original-url', 'x-rewrite-url'],
] as const

/** What a proxy says about its client; from other clients it is not believed. */
export const proxyWords = ['x-real-ip', 'x-client-ip', 'true-client-ip'] as const

/** What Weir and proxies say about the request: these, and any name with one of the prefixes. */
export const words = ['weir-decision', 'weir-degraded', 'forwarded'] as const
/** Names with this prefix are Weir's own. */
export const weirPrefix = 'x-weir-'
/** Names with this prefix are for trusted proxies. */
export const forwardedPrefix = 'x-forwarded-'

/**
 * Writes a name with hyphens. CGI gateways and PHP read `X_Weir_Subject`, `X.Weir.Subject` and some `X~Weir~Subject` as
 * `X-Weir-Subject`, so all are one name. `name` is in lower case.
 */
export const withHyphens = (name: string): string =>
  /[^a-z\d-]/.test(name) ? name.replaceAll(/[^a-z\d-]/g, '-') : name

/** RFC 9110 section 7.6.1: they belong to one connection. undici writes its own framing and `Host`. */
const ofTheConnection = ['connection', 'keep-alive', 'proxy-connection', 'te', 'transfer-encoding', 'upgrade', 'host']
/** Weir answers or writes these itself. */
const writtenByWeir = [
  'expect',
  'proxy-authorization',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  ...words,
]

/** Names of headers that `Connection` makes ones of a single connection too; undefined for none, as mostly. */
export function connectionNamed(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}

/** Compiles which headers a policy reads for callers, costs and scopes. */
export function createReadHeaders({ routes, limits, identity }: Pick<Policy, 'routes' | 'limits' | 'identity'>) {
  const { keyHeaders, trustedHeaders: trusted } = identity
  const charged = new Set(namesOf({ limits }, 'header'))
  for (const { costFrom } of routes) if (costFrom?.kind === 'header') charged.add(costFrom.name.toLowerCase())
  const names = new Set([...charged, 'authorization', ...keyHeaders])
  for (const name of [trusted?.subject, trusted?.planHeader]) if (name !== undefined) names.add(name)
  const spelled = new Set([...names].map(withHyphens))
  const naming = [trusted?.subject ?? '', trusted?.planHeader ?? ''].map(withHyphens)
  return {
    /** Names that are never forwarded: those above, and those in which trusted proxies name subjects. */
    dropped: new Set([...ofTheConnection, ...writtenByWeir, ...overrides, ...naming]) as ReadonlySet<string>,
    /**
     * Whether a header is another spelling of one that is read (`X_Units` of `X-Units`): an upstream could take its
     * value for the one that was charged. `name` is in lower case, `hyphened` is that by `withHyphens`.
     */
    isTwin: (name: string, hyphened: string): boolean => spelled.has(hyphened) && !names.has(name),
    /**
     * Refuses a `Connection` that names a header of a cost or a scope: it would be charged, and then withheld from the
     * upstream.
     */
    problemOf(connectionNamed: ReadonlySet<string> | undefined): Problem | undefined {
      if (connectionNamed === undefined) return undefined
      for (const name of connectionNamed) if (charged.has(name)) return namedByConnection(name)
      return undefined
    },
  }
}

const namedByConnection = (name: string): Problem =>
  badRequest(
    `Connection names ${name}, which is for the whole way and not for one connection (RFC 9110 section 7.6.1). Leave it out there.`,
  )

/** The headers that a policy reads, compiled. */
export type ReadHeaders = ReturnType<typeof createReadHeaders>
