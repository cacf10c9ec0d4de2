import type { Upstream } from '../policy.ts'
import { hostPattern, parseHost, parseOrigin } from '../policy-values.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** An upstream that is silent for longer is taken for gone. */
const timeoutMs = 30_000
/** Shorter, and a busy upstream counts as gone; longer, and callers have gone themselves. */
const timeout = t.duration('100ms', '1h', { rule: 'a duration such as 10s or 2m' })
const urlRule = 'an http or https URL of scheme, host and port only, without credentials, such as http://127.0.0.1:9000'

const host = t.text('a host name without a port, such as api.example.com or "*.example.com", or "*"', parseHost, {
  pattern: hostPattern.source,
})
const hosts = t.list('a list of host names such as [api.example.com] or ["*"]', t.located(host))

const upstream = t.object('an upstream', {
  url: t.required(
    'Scheme, host and port.',
    t.secretText(urlRule, parseOrigin, { pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/@?#\\s]+/?$' }),
  ),
  hosts: t.optional(
    'Host names it answers for, without port; "*.example.com" for all below that name, "*" for every other one.',
    hosts,
  ),
  timeout: t.withDefault(
    'It counts as gone when it sends nothing for this long: 100ms to 1h. Default: 30s.',
    timeout,
    timeoutMs,
  ),
})

/** The section `upstreams`. */
export const upstreamEntries = t.entries(upstream.schema, { plural: 'upstreams', one: 'an upstream' })

/** The upstreams by name; undefined for one that is there but wrong. No host belongs to two. */
export function readUpstreams(reader: PolicyReader, at: SourcePosition): Map<string, Upstream | undefined> {
  const upstreams = new Map<string, Upstream | undefined>()
  const owners = new Map<string, string>()
  for (const [name, field] of upstreamEntries.read(reader, at)) {
    const found = upstream.find(reader, field)
    const isWritten = found?.fields.has('hosts') ?? true
    const taken = found?.values.hosts ?? (isWritten ? [] : [{ value: '*', at: field }])
    for (const { value: one, at: hostAt } of taken) {
      const owner = owners.get(one)
      if (owner === undefined) owners.set(one, name)
      else if (isWritten) reader.problem(hostAt, `the host ${one} is the upstream ${owner}'s already`)
      else {
        const why = `without, it takes every host, as the upstream ${owner} does ([] for routes only)`
        reader.problemAtKey(field, `needs \`hosts\`: ${why}`)
      }
    }
    const { url, timeout: ms } = found?.values ?? {}
    const isWhole = url !== undefined && ms !== undefined
    upstreams.set(name, isWhole ? { name, url, hosts: taken.map(({ value }) => value), timeoutMs: ms } : undefined)
  }
  return upstreams
}
