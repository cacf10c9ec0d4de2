import { reasons } from '@weir/core/limits/decision.ts'

/** Problem types of the api listener and the proxy, as `type` has them. docs/errors.md says what each means. */
const problemTypes = [
  ...['quota-exceeded', 'temporary-reduced-capacity', 'abnormal-usage-detected'].map(
    (word) => `https://iana.org/assignments/http-problem-types#${word}`,
  ),
  ...[
    'bad-request',
    'unauthorized',
    'forbidden',
    'scope-missing',
    'untrusted-proxy',
    'not-found',
    'method-not-allowed',
  ],
  ...[
    'cost-exceeds-limit',
    'too-many-open',
    'cost-unreadable',
    'no-upstream',
    'upstream-timeout',
    'upstream-unreachable',
  ],
  ...['upstream-busy', 'headers-too-large', 'internal'],
  ...['unknown-decision', 'settlement-too-high', 'conflict', 'settlement-unavailable', 'limits-unavailable'],
].map((word) => (word.startsWith('https:') ? word : `urn:weir:problem:${word}`))

const count = { type: 'integer', minimum: 0 }
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

const limitState = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'size', 'used', 'remaining', 'reset_ms'],
  properties: { name: { type: 'string' }, size: count, used: count, remaining: count, reset_ms: count },
}

export const schemas = {
  Problem: {
    type: 'object',
    description: 'An error by RFC 9457.',
    required: ['type', 'title', 'status', 'detail'],
    properties: {
      type: { type: 'string', enum: problemTypes },
      title: { type: 'string' },
      status: { type: 'integer', minimum: 400, maximum: 599 },
      detail: { type: 'string' },
      'violated-policies': { type: 'array', items: { type: 'string' }, description: 'Names of limits.' },
      scope: { type: 'string' },
      challenge: { type: 'string', description: 'Of quota-exceeded: the page that lets people in again.' },
      settled_cost: { ...count, description: 'Of a conflict: the cost that the decision was settled to.' },
      cost_max: { ...count, description: 'Of settlement-too-high: the highest cost that it can be settled to.' },
    },
  },
  CheckResult: {
    type: 'object',
    additionalProperties: false,
    required: ['id', 'allowed', 'reason', 'denied_by', 'retry_after_ms', 'limits'],
    properties: {
      id: {
        type: ['string', 'null'],
        description:
          "Of the decision's record; null for a peek, and with WEIR_ON_JOURNAL_FULL=admit where it could not be recorded.",
      },
      allowed: { type: 'boolean' },
      reason: { type: 'string', enum: [...reasons] },
      denied_by: {
        type: 'string',
        description:
          'Name of the first limit that refused, or of an allowed request degraded it; _markers: too many open decisions; or empty.',
      },
      retry_after_ms: count,
      on_exceed: {
        ...{ type: 'string', enum: ['drop', 'degrade', 'block', 'delay', 'challenge'] },
        description: 'What the policy wants done beyond denied_by; absent for deny, and where nothing was exceeded.',
      },
      challenge: { type: 'string', description: 'With on_exceed challenge: the page.' },
      limits: { type: 'array', items: limitState },
    },
  },
  Paused: {
    type: 'object',
    additionalProperties: false,
    required: ['limit', 'retry_after_ms'],
    properties: {
      limit: { type: 'string' },
      retry_after_ms: { ...count, description: 'Until the pause ends that stands now.' },
    },
  },
  Settled: {
    type: 'object',
    additionalProperties: false,
    required: ['id', 'cost', 'adjustment', 'correction', 'limits'],
    properties: {
      id: { type: 'string', description: 'Of the decision.' },
      cost: { ...count, description: 'What it is settled to.' },
      adjustment: { type: 'integer', description: 'Units more than it was charged; less below 0.' },
      correction: {
        type: ['string', 'null'],
        description: 'Id of the correction record; null where there is nothing to correct.',
      },
      limits: { type: 'array', items: limitState, description: 'Whose counts were corrected, as that left them.' },
    },
  },
  BatchResults: {
    type: 'object',
    additionalProperties: false,
    required: ['results'],
    properties: {
      results: {
        type: 'array',
        description: 'In the order of the checks.',
        items: {
          anyOf: [
            ref('CheckResult'),
            {
              type: 'object',
              additionalProperties: false,
              required: ['problem'],
              properties: { problem: ref('Problem') },
            },
          ],
        },
      },
    },
  },
}

/** Headers by name, in each dialect only some of them. */
const verdictHeaders = {
  'Weir-Decision': {
    schema: { type: 'string' },
    description: 'Id of the record; not on a peek, nor where there is none.',
  },
  RateLimit: { schema: { type: 'string' }, description: 'Draft 10, the default dialect.' },
  'RateLimit-Policy': { schema: { type: 'string' }, description: 'In the syntax of draft 10 or of draft 6.' },
  'RateLimit-Limit': { schema: count, description: 'Dialect draft6.' },
  'RateLimit-Remaining': { schema: count, description: 'Dialect draft6.' },
  'RateLimit-Reset': { schema: count, description: 'Dialect draft6: seconds.' },
  'X-RateLimit-Limit': { schema: count, description: 'Dialect x-ratelimit.' },
  'X-RateLimit-Remaining': { schema: count, description: 'Dialect x-ratelimit.' },
  'X-RateLimit-Reset': { schema: count, description: 'Dialect x-ratelimit: seconds since the epoch.' },
}
const challenge = {
  'Weir-Challenge': { schema: { type: 'string' }, description: 'By a limit with a challenge: the page for people.' },
}
const noStore = { 'Cache-Control': { required: true, schema: { type: 'string', const: 'no-store' } } }
const retryAfter = { 'Retry-After': { schema: { type: 'integer', minimum: 1 } } }
const authenticate = { 'WWW-Authenticate': { required: true, schema: { type: 'string' } } }
/** The status and the problem of a refusal, for gateways that hand on neither. */
const forGateways = {
  'X-Limit-Status': { schema: { type: 'integer' }, description: 'With deny_status: the status without it.' },
  'X-Weir-Problem': { schema: { type: 'string' }, description: 'With deny_status: the problem, in ASCII.' },
  'Weir-On-Exceed': { schema: { type: 'string', const: 'drop' }, description: 'The client is to get no answer.' },
}

type Headers = Readonly<Record<string, object>>

const problem = (description: string, headers: Headers = {}) => ({
  description,
  headers: { ...noStore, ...headers },
  content: { 'application/problem+json': { schema: ref('Problem') } },
})
const json = (description: string, name: keyof typeof schemas, headers: Headers) => ({
  description,
  headers: { ...noStore, ...headers },
  content: { 'application/json': { schema: ref(name) } },
})

const strangers = {
  401: problem('No valid credential.', { ...verdictHeaders, ...authenticate }),
  429: problem('Too many wrong credentials from this address.', { ...verdictHeaders, ...retryAfter }),
  503: problem('Not recorded, the policy is stale, or the issuer of the token gives no keys.', {
    ...verdictHeaders,
    ...retryAfter,
  }),
}
const malformed = {
  400: problem('The question is malformed; detail says where.'),
  413: problem('The body is too large.'),
  415: problem('The body is not application/json.'),
}
const ours = { 431: problem('The headers are too large.'), 500: problem('A fault of Weir.') }

const refused = {
  401: problem('No valid credential.', { ...verdictHeaders, ...authenticate }),
  429: problem('A limit refused, or too many wrong credentials.', { ...verdictHeaders, ...retryAfter, ...challenge }),
  503: problem('Not checked, not recorded, or too many wait for the upstream.', { ...verdictHeaders, ...retryAfter }),
}

/** What each route of the api listener answers, by path. */
export const answersOf: Readonly<Record<string, Readonly<Record<number, object>>>> = {
  '/v1/check': {
    200: json('Decided: allowed or not.', 'CheckResult', verdictHeaders),
    ...malformed,
    ...strangers,
    ...ours,
    403: problem('A credential of a subject asks for more than its own, or a token lacks the scope check.'),
  },
  '/v1/check/batch': {
    200: json(
      'Each decided for itself; those that are malformed or could not be recorded have a problem.',
      'BatchResults',
      {},
    ),
    ...malformed,
    ...strangers,
    ...ours,
    403: problem('A token lacks the scope check.'),
  },
  '/v1/settle': {
    200: json('Settled, now or by an earlier request to the same cost.', 'Settled', {}),
    ...malformed,
    ...strangers,
    ...ours,
    403: problem('Not by this credential, or not to that cost; or a token lacks the scope check.'),
    404: problem('No decision of this subject that could be settled.'),
    409: problem('It was settled to another cost.'),
    503: problem('Not finished: repeat the request.', retryAfter),
  },
  '/v1/pause': {
    200: json('The limit refuses this subject until then.', 'Paused', {}),
    ...malformed,
    ...strangers,
    ...ours,
    403: problem('A credential of a subject names another, or a token lacks the scope check.'),
    503: problem('Redis did not answer. Ask again.', retryAfter),
  },
  '/v1/authorize': {
    200: {
      description: 'Allowed.',
      headers: {
        ...noStore,
        ...verdictHeaders,
        'X-Envoy-Auth-Headers-To-Remove': { schema: { type: 'string' }, description: 'X-Weir-Credential, for Envoy.' },
        ...Object.fromEntries(
          ['X-Weir-Subject', 'X-Weir-Plan', 'X-Weir-Key-Id', 'X-Weir-Credential', 'X-Weir-Degraded'].map((name) => [
            name,
            { required: true, schema: { type: 'string' } },
          ]),
        ),
      },
    },
    ...Object.fromEntries(
      Object.entries({ ...refused, ...ours, 400: malformed[400] }).map(([status, answer]) => [
        status,
        { ...answer, headers: { ...answer.headers, ...forGateways } },
      ]),
    ),
    403: problem('An untrusted proxy, a cost above the limit, or a refusal under deny_status=403.', {
      ...verdictHeaders,
      ...retryAfter,
      ...forGateways,
      ...challenge,
    }),
    413: problem('A cost above the limit, with WEIR_COST_EXCEEDS_STATUS=413.', { ...verdictHeaders, ...forGateways }),
  },
}

/** What an upstream answers, as the proxy passes it on: status and body are its own. */
const passed = {
  description: "The upstream's answer, with the headers of a verdict in place of its own of these names.",
  headers: verdictHeaders,
  content: { '*/*': {} },
}

/** What the proxy answers itself, by status, and `ProxyPassed` for every other answer. */
const ownProxyResponses = Object.fromEntries(
  Object.entries({
    ...refused,
    ...ours,
    303: {
      description: 'A limit with a challenge refused a request for a page.',
      headers: {
        ...noStore,
        ...verdictHeaders,
        ...challenge,
        Location: { required: true, schema: { type: 'string' } },
      },
    },
    400: problem('The request or its cost cannot be read in one way only.', verdictHeaders),
    403: problem('The cost is above what the limit ever admits.', verdictHeaders),
    404: problem('No upstream for this host.', verdictHeaders),
    408: problem('The request did not come in time.', verdictHeaders),
    413: problem('A body that says the cost is too large; or in place of 403.', verdictHeaders),
    415: problem('A body that says the cost is encoded.', verdictHeaders),
    502: problem('The upstream could not be reached or broke off.', verdictHeaders),
    504: problem('The upstream gave no answer in time.', verdictHeaders),
  }).map(([status, answer]) => [`Proxy${status}`, answer]),
)
export const proxyResponses = { ...ownProxyResponses, ProxyPassed: passed }
