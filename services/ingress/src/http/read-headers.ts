import type { Policy } from '@weir/policy/policy.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import { namesOf } from './named-scopes.ts'
import { withHyphens } from './withheld-headers.ts'

/** The headers by which a policy tells callers, costs and scopes, compiled once. */
export function createReadHeaders({ routes, limits, identity }: Pick<Policy, 'routes' | 'limits' | 'identity'>) {
  const { keyHeaders, trustedHeaders: trusted } = identity
  const charged = new Set(namesOf({ limits }, 'header'))
  for (const { costFrom } of routes) if (costFrom?.kind === 'header') charged.add(costFrom.name.toLowerCase())
  const names = new Set([...charged, 'authorization', ...keyHeaders])
  for (const name of [trusted?.subject, trusted?.planHeader]) if (name !== undefined) names.add(name)
  const spelled = new Set([...names].map(withHyphens))
  return {
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

export type ReadHeaders = ReturnType<typeof createReadHeaders>
