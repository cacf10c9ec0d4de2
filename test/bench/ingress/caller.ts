import { createHash } from 'node:crypto'

/** One for each connection, so that no two requests under way share a count: the dearest case for calls that gather. */
export const callers = 64

/** What each connection sends, over and over. */
export interface Asking {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headersOf: (connection: number) => Readonly<Record<string, string>>
  readonly bodyOf?: (connection: number) => string
  /** Over gRPC, instead of all that. */
  readonly messageOf?: (connection: number) => object
}

/** May check anybody. Of the bench's own Redis and its own policy; it opens nothing else. */
export const token = 'bench-token-that-opens-nothing-but-this-run'
const keyOf = (caller: number) => `bench-key-of-caller-${caller}`

const sha256 = (secret: string) => createHash('sha256').update(secret).digest('hex')

export const tokenSha256 = sha256(token)

/** What every check asks about. */
export const checkedRoute = 'GET /v1/things'

const limitNames = ['minute', 'day', 'hour']

/** A check of the caller's limits. Other servers than Weir look at the subject alone. */
export const askCheck: Asking = {
  method: 'POST',
  path: '/v1/check',
  headersOf: () => ({ 'content-type': 'application/json', authorization: `Bearer ${token}` }),
  bodyOf: (caller) => JSON.stringify({ subject: `caller-${caller}`, route: checkedRoute }),
}

/** The same as Envoy asks, from this machine. */
export const askGrpc: Asking = {
  method: 'POST',
  path: '',
  headersOf: () => ({}),
  messageOf: (caller) => ({
    domain: 'bench',
    descriptors: [
      {
        entries: ['subject', 'method', 'path'].map((key, at) => ({
          key,
          value: [`caller-${caller}`, 'GET', '/v1/things'][at],
        })),
      },
    ],
  }),
}

/** The same three limits as `envoyproxy/ratelimit` is asked for them: a descriptor each. */
export const askReference: Asking = {
  ...askGrpc,
  messageOf: (caller) => ({
    domain: 'bench',
    descriptors: limitNames.map((span) => ({
      entries: [
        { key: 'subject', value: `caller-${caller}` },
        { key: 'span', value: span },
      ],
    })),
  }),
}

/** Its configuration: as many as no run uses up. */
export const referenceConfig = (): string =>
  JSON.stringify({
    domain: 'bench',
    descriptors: [
      {
        key: 'subject',
        descriptors: limitNames.map((unit) => ({
          key: 'span',
          value: unit,
          rate_limit: { unit, requests_per_unit: 1_000_000_000 },
        })),
      },
    ],
  })

/** What an API's client sends, with a key of its own. */
export const askProxy: Asking = {
  method: 'GET',
  path: '/v1/things',
  headersOf: (caller) => ({ authorization: `Bearer ${keyOf(caller)}` }),
}

/** The same as a gateway on this machine asks about it. */
export const askAuthorize: Asking = {
  method: 'GET',
  path: '/v1/authorize',
  headersOf: (caller) => ({
    ...askProxy.headersOf(caller),
    'x-original-method': askProxy.method,
    'x-original-uri': askProxy.path,
  }),
}

/**
 * Every caller has so many limits that no run uses up: two windows around a quota by the calendar. Coalesced, its
 * requests of a second share a record; with a lease applications take units ahead.
 */
export function policyText(
  limits: 2 | 3,
  upstreamUrl: string,
  { isCoalesced = false, clientLease = '' }: { readonly isCoalesced?: boolean; readonly clientLease?: string } = {},
): string {
  const subjects = Array.from(
    { length: callers },
    (_, caller) =>
      `  caller-${caller}: { plan: bench, keys: [{ id: "key-${caller}", sha256: ${sha256(keyOf(caller))} }] }`,
  )
  return `version: 1
plans: { bench: { limits: [${limitNames.slice(0, limits).join(', ')}], coalesce: ${isCoalesced ? '1s' : 'none'}${clientLease === '' ? '' : `, clientLease: ${clientLease}`} } }
limits:
  minute: { algorithm: fixed_window, size: 1000000000, window: 1m }
  day: { algorithm: fixed_window, size: 1000000000, period: day }
  hour: { algorithm: fixed_window, size: 1000000000, window: 1h }
routes: [{ match: "GET /v1/things" }]
upstreams: { things: { url: "${upstreamUrl}", hosts: ["*"] } }
identity: { trustedProxies: [127.0.0.1] }
subjects:
${subjects.join('\n')}
`
}
