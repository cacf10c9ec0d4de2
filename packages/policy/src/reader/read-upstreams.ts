import { definedFields } from '@weir/core/defined-fields.ts'
import { pathMarks } from '@weir/core/http/marked-path.ts'
import type { Cors, Upstream, UpstreamHeader } from '../policy.ts'
import { hostPattern, parseHost, parseOrigin } from '../policy-values.ts'
import { variable } from './endpoint-keys.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** An upstream that is silent for longer is taken for gone. */
const timeoutMs = 30_000
/** More than any supplier asks for. */
const headersMax = 16
/** Shorter, and a busy upstream counts as gone; longer, and callers have gone themselves. */
const timeout = t.duration('100ms', '1h', { rule: 'a duration such as 10s or 2m' })
const urlRule = 'an http or https URL with only scheme, host and port, no credentials, such as http://127.0.0.1:9000'

const host = t.text('a host name without a port, such as api.example.com or "*.example.com", or "*"', parseHost, {
  pattern: hostPattern.source,
})
const hosts = t.list('a list of host names such as [api.example.com] or ["*"]', t.located(host))

const origin = t.matching(
  'an origin such as https://app.example.com, without a path, or "*"',
  /^(?:\*|[a-z][a-z0-9+.-]*:\/\/[^\s/?#@]+)$/,
)
const cors = t.checked(
  t.object('a cors', {
    origins: t.required(
      'Origins of pages that may read responses; "*" for all.',
      t.list('a list of origins', origin, { min: 1, wrongCount: () => 'names no origin: no page could read answers' }),
    ),
    credentials: t.withDefault('Allows browser cookies; not with "*". Default: false.', t.boolean, false),
  }),
  (found, reader, at): Cors | undefined => {
    if (!found.credentials || !found.origins.includes('*')) return found
    return reader.problem(
      at,
      'allows credentials from every origin, so any website could act as its visitors; list the origins',
    )
  },
)

const headerNames = {
  rule: "in lower case, and none that frames the request or is Weir's own",
  pattern:
    /^(?!(?:host|connection|content-length|transfer-encoding|upgrade|te|expect|keep-alive|forwarded|via|weir-.*|x-weir-.*|x-forwarded-.*)$)[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/,
  called: 'name',
}
const secret = t.object('a secret', { secretEnv: t.required('Variable with the value.', variable) })
const plainText = t.matching('a text of printable characters', /^[ -~]{1,1024}$/)
const header: t.ValueType<UpstreamHeader> = {
  schema: { oneOf: [plainText.schema, secret.schema, { type: 'null' }] },
  read: (reader, at) =>
    reader.isEmpty(at)
      ? null
      : typeof reader.scalar(at) === 'string'
        ? plainText.read(reader, at)
        : secret.read(reader, at),
}
const headerEntries = t.entries(header.schema, {
  plural: 'headers',
  one: 'a header',
  max: headersMax,
  ids: headerNames,
})
const headers: t.ValueType<ReadonlyMap<string, UpstreamHeader>> = {
  schema: headerEntries.schema,
  read: (reader, at) => {
    const found = headerEntries.each(reader, at, (_, field) => header.read(reader, field))
    return new Map([...found].flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])))
  },
}

const upstream = t.object('an upstream', {
  url: t.required(
    'Scheme, host and port.',
    t.secretText(urlRule, parseOrigin, { pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/@?#\\s]+/?$' }),
  ),
  hosts: t.optional(
    'Host names to serve, without port; "*.example.com" for all subdomains, "*" for all other hosts.',
    hosts,
  ),
  timeout: t.withDefault(
    'Timeout if the upstream sends nothing for this long: 100ms to 1h. Default: 30s.',
    timeout,
    timeoutMs,
  ),
  keepInPath: t.orEmpty(
    'Marks that the upstream treats as data in a path: "%2F", ";" or "//". Such paths are forwarded unchanged.',
    t.list('a list of "%2F", ";" and "//"', t.oneOf(pathMarks), { nameOf: String }),
  ),
  cors: t.optional('Weir answers preflights, uncounted, and sets which pages may read responses.', cors),
  headers: t.optional(
    "Headers that replace the client's: a text, { secretEnv: NAME }, or null to remove one.",
    headers,
  ),
  identity: t.optional(
    'none: sends neither the subject nor addresses to the upstream. Default: none with a secret in `headers`, else full.',
    t.oneOf(['none', 'full']),
  ),
  metered: t.optional(
    'Refuses requests to routes without a meter. Default: true with a secret in `headers`.',
    t.boolean,
  ),
  connections: t.optional('Requests to it at a time, and as many that wait. Default: 1024.', t.integer(1, 65_536)),
  idle: t.optional('How long a response may pause: 100ms to 1h. Default: the timeout.', timeout),
  maxDuration: t.optional(
    'After how long what a metered request holds counts as used: 1s to 12h. Default: 12h.',
    t.duration('1s', '12h'),
  ),
  preserveHost: t.withDefault("Sends the client's Host, not the upstream's. Default: false.", t.boolean, false),
})

/** With a credential it is a supplier's: it learns of no customer, and is asked for nothing that is not metered. */
function supplierSettings(values: Partial<t.FoundValues<typeof upstream.members>>) {
  const { headers: sent, connections, idle: idleMs, maxDuration: maxDurationMs } = values
  const hasSecret = [...(sent?.values() ?? [])].some((value) => typeof value === 'object' && value !== null)
  const isAnonymous = (values.identity ?? (hasSecret ? 'none' : 'full')) === 'none' || undefined
  const isMetered = (values.metered ?? hasSecret) || undefined
  return definedFields({ headers: sent, connections, idleMs, maxDurationMs, isAnonymous, isMetered })
}

/** The section `upstreams`. */
export const upstreamEntries = t.entries(upstream.schema, { plural: 'upstreams', one: 'an upstream' })

/** The upstreams by name; undefined for one that is there but wrong. No host belongs to two. */
export function readUpstreams(reader: PolicyReader, at: SourcePosition): ReadonlyMap<string, Upstream | undefined> {
  const owners = new Map<string, string>()
  return upstreamEntries.each(reader, at, (name, field) => {
    const found = upstream.find(reader, field)
    const isWritten = found?.fields.has('hosts') ?? true
    const taken = found?.values.hosts ?? (isWritten ? [] : [{ value: '*', at: field }])
    for (const { value: one, at: hostAt } of taken) {
      const owner = owners.get(one)
      if (owner === undefined) owners.set(one, name)
      else if (isWritten) reader.problem(hostAt, `the host ${one} already belongs to the upstream ${owner}`)
      else {
        const why = `serves every host by default, as the upstream ${owner} does ([] for routes only)`
        reader.problemAtKey(field, `needs \`hosts\`: ${why}`)
      }
    }
    const { url, timeout: ms, keepInPath = [], preserveHost = false, cors: pages } = found?.values ?? {}
    if (url === undefined || ms === undefined) return undefined
    const more = { hosts: taken.map(({ value }) => value), keepInPath, preserveHost, cors: pages }
    return { name, url, timeoutMs: ms, ...more, ...supplierSettings(found?.values ?? {}) }
  })
}
