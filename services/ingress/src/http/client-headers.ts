import type { Policy } from '@weir/policy/policy.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import { namesOf } from './named-scopes.ts'

// Headers of a client that no upstream gets, in lower case with hyphens. The proxy drops them, and so does every file
// of docs/integrations, which test/repo compares with these lists and prefixes.

/** With these a framework serves another method or path than the one that Weir decided about. */
export const overrideHeaders = [
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
] as const

/** Tell a client's address: trusted from a proxy that the policy trusts, from no other client. */
export const clientAddressHeaders = ['x-real-ip', 'x-client-ip', 'true-client-ip'] as const

/** Tell facts about the request, written by Weir or a proxy; so do all names with one of the prefixes. */
export const requestFactHeaders = ['weir-decision', 'weir-degraded', 'forwarded'] as const
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

/** Belong to one connection (RFC 9110 section 7.6.1). undici writes its own framing and `Host`. */
const connectionHeaders = ['connection', 'keep-alive', 'proxy-connection', 'te', 'transfer-encoding', 'upgrade', 'host']
/** Weir answers or writes these itself. */
const writtenHeaders = [
  'expect',
  'proxy-authorization',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  ...requestFactHeaders,
]

/** Returns the headers that `Connection` names, which belong to this connection too; undefined for none. */
export function connectionNamed(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}

/** Compiles the set of headers that a policy reads for callers, costs and scopes. */
export function createReadHeaders({
  routes,
  limits,
  identity,
  meters,
}: Pick<Policy, 'routes' | 'limits' | 'identity' | 'meters'>) {
  const { keyHeaders, trustedHeaders: trusted } = identity
  const charged = new Set(namesOf({ limits }, 'header'))
  if (namesOf({ limits }, 'cookie').length > 0) charged.add('cookie')
  for (const { costFrom } of routes) if (costFrom?.kind === 'header') charged.add(costFrom.name.toLowerCase())
  for (const { units } of meters.values()) {
    for (const { before } of units.values()) if (before?.kind === 'header') charged.add(before.name)
  }
  const names = new Set([...charged, 'authorization', ...keyHeaders])
  const trustedNames = [trusted?.subject, trusted?.planHeader, trusted?.parentHeader]
  for (const name of trustedNames) if (name !== undefined) names.add(name)
  const hyphenedNames = new Set([...names].map(withHyphens))
  const subjectHeaders = trustedNames.map((name = '') => withHyphens(name))
  const dropped = new Set<string>([...connectionHeaders, ...writtenHeaders, ...overrideHeaders, ...subjectHeaders])
  return {
    /** Names that are never forwarded: those above, and those in which trusted proxies name subjects. */
    dropped,
    /**
     * Whether a header is another spelling of one that is read (`X_Units` of `X-Units`): an upstream could take its
     * value for the one that was charged. `name` is in lower case, `hyphened` is that by `withHyphens`.
     */
    isTwin: (name: string, hyphened: string): boolean => hyphenedNames.has(hyphened) && !names.has(name),
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
    `Connection names ${name}, which is an end-to-end header (RFC 9110 section 7.6.1). Remove it from Connection.`,
  )

/** The headers that a policy reads, compiled. */
export type ReadHeaders = ReturnType<typeof createReadHeaders>
