import type { IncomingHttpHeaders } from 'node:http'
import type { Policy } from '@weir/policy/policy.ts'

/** Values for `header:`, `query:` and `attribute:` scopes, by the scope's whole text. */
export type NamedValues = ReadonlyMap<string, string>

/** Names that some limit of the policy counts by. */
export function namesOf(policy: Pick<Policy, 'limits'>, kind: 'header' | 'query' | 'attribute'): readonly string[] {
  const names = new Set<string>()
  for (const { by } of policy.limits.values()) for (const part of by) if (part.kind === kind) names.add(part.name)
  return [...names]
}

/**
 * Reads what limits count by out of a proxied request: headers as Node joins them, of query parameters the first of the
 * name. Undefined without a look at the request when no limit counts by any.
 */
export function createRequestScopes(
  policy: Pick<Policy, 'limits'>,
): (headers: IncomingHttpHeaders, url: string) => NamedValues | undefined {
  const [headerNames, queryNames] = [namesOf(policy, 'header'), namesOf(policy, 'query')]
  if (headerNames.length + queryNames.length === 0) return () => undefined
  return function requestScopes(headers, url) {
    const values = new Map<string, string>()
    for (const name of headerNames) {
      const value = headers[name]
      if (value !== undefined) values.set(`header:${name}`, Array.isArray(value) ? value.join(', ') : value)
    }
    const queryAt = queryNames.length === 0 ? -1 : url.indexOf('?')
    if (queryAt === -1) return values
    const query = new URLSearchParams(url.slice(queryAt + 1))
    for (const name of queryNames) values.set(`query:${name}`, query.get(name) ?? '')
    return values
  }
}

/** Takes from the attributes of a check those that some limit counts by. */
export function createAttributeScopes(
  policy: Pick<Policy, 'limits'>,
): (attributes: Readonly<Record<string, string | number>>) => NamedValues | undefined {
  const names = namesOf(policy, 'attribute')
  if (names.length === 0) return () => undefined
  return function attributeScopes(attributes) {
    const values = new Map<string, string>()
    for (const name of names)
      if (Object.hasOwn(attributes, name)) values.set(`attribute:${name}`, `${attributes[name]}`)
    return values
  }
}
