import type { TSchema } from 'typebox'
import { batchBody, batchResults, checkBody, checkResult, pauseBody, paused, settleBody, settled } from './check.ts'
import { checkProblem } from './problem.ts'

/*
 * The operations of the ingress: the check API, the endpoint for gateways, and what the proxy answers itself.
 */

const textHeader = (description?: string, rules: object = {}) => ({
  ...(description === undefined ? {} : { description }),
  schema: { type: 'string', ...rules },
})
const wholeHeader = (description?: string, minimum = 0) => ({
  ...(description === undefined ? {} : { description }),
  schema: { type: 'integer', minimum },
})
const always = { required: true, schema: { type: 'string' } }

/** Groups of headers. Of a decision's there are only some in each dialect. */
const headers = {
  noStore: { 'Cache-Control': { required: true, schema: { type: 'string', const: 'no-store' } } },
  decision: {
    'Weir-Decision': textHeader('Id of the record; not on a peek, nor where there is none.'),
    RateLimit: textHeader('Draft 10, the default dialect.'),
    'RateLimit-Policy': textHeader('In the syntax of draft 10 or of draft 6.'),
    'RateLimit-Limit': wholeHeader('Dialect draft6.'),
    'RateLimit-Remaining': wholeHeader('Dialect draft6.'),
    'RateLimit-Reset': wholeHeader('Dialect draft6: seconds.'),
    'X-RateLimit-Limit': wholeHeader('Dialect x-ratelimit.'),
    'X-RateLimit-Remaining': wholeHeader('Dialect x-ratelimit.'),
    'X-RateLimit-Reset': wholeHeader('Dialect x-ratelimit: seconds since the epoch.'),
  },
  challenge: { 'Weir-Challenge': textHeader('By a limit with a challenge: the page for people.') },
  retryAfter: { 'Retry-After': wholeHeader(undefined, 1) },
  authenticate: { 'WWW-Authenticate': always },
  location: { Location: always },
  // The status and the problem of a refusal, for gateways that hand on neither.
  forGateways: {
    'X-Limit-Status': { description: 'With deny_status: the status without it.', schema: { type: 'integer' } },
    'X-Weir-Problem': textHeader('With deny_status: the problem, in ASCII.'),
    'Weir-On-Exceed': textHeader('The client is to get no answer.', { const: 'drop' }),
  },
  caller: {
    'X-Envoy-Auth-Headers-To-Remove': textHeader('X-Weir-Credential, for Envoy.'),
    'X-Weir-Subject': always,
    'X-Weir-Plan': always,
    'X-Weir-Key-Id': always,
    'X-Weir-Credential': always,
    'X-Weir-Degraded': always,
  },
}

/** One answer, as OpenAPI has it. */
export interface IngressAnswer {
  readonly description: string
  readonly headers: object
  readonly content?: object
}

/** Answers by status. */
type IngressAnswers = Readonly<Record<number, IngressAnswer>>

type Group = keyof typeof headers

/** A schema by its name under components, a problem, or nothing. */
const answer = (description: string, schema: string | undefined, groups: readonly Group[]): IngressAnswer => ({
  description,
  headers: Object.assign({}, headers.noStore, ...groups.map((group) => headers[group])),
  ...(schema === undefined
    ? {}
    : {
        content: {
          [schema === 'Problem' ? 'application/problem+json' : 'application/json']: {
            schema: { $ref: `#/components/schemas/${schema}` },
          },
        },
      }),
})
const refused = (description: string, ...groups: readonly Group[]) => answer(description, 'Problem', groups)

/** The schemas that answers have names of. */
export const ingressSchemas: Readonly<Record<string, TSchema>> = {
  Problem: checkProblem,
  CheckResult: checkResult,
  BatchResults: batchResults,
  Settled: settled,
  Paused: paused,
}

const unauthorized = refused('No valid credential.', 'decision', 'authenticate')
const unrecorded = 'Not recorded, the policy is stale, or the issuer of the token gives no keys.'
const headersTooLarge = 'The headers are too large.'
const fault = 'A fault of Weir.'
const overLimit =
  'A limit refused (with the body of the route, whatever its type, where that has one of its own), or too many wrong credentials.'
const unchecked = 'Not checked, not recorded, or too many wait for the upstream.'

/** What any question to the check API may be answered. */
const ofAll: IngressAnswers = {
  400: refused('The question is malformed; detail says where.'),
  401: unauthorized,
  413: refused('The body is too large.'),
  415: refused('The body is not application/json.'),
  429: refused('Too many wrong credentials from this address.', 'decision', 'retryAfter'),
  431: refused(headersTooLarge),
  500: refused(fault),
  503: refused(unrecorded, 'decision', 'retryAfter'),
}

/** A path of the api listener: its body and its answers. Every operation of it takes the same. */
export interface IngressPath {
  readonly body?: TSchema
  readonly answers: IngressAnswers
}

/** The paths of the api listener. */
export const ingressPaths = {
  '/v1/check': {
    body: checkBody,
    answers: {
      ...ofAll,
      200: answer('Decided: allowed or not.', 'CheckResult', ['decision']),
      403: refused('A credential of a subject asks for more than its own, or a token lacks the scope check.'),
      422: refused('Another question was asked under this idempotency_key.'),
    },
  },
  '/v1/check/batch': {
    body: batchBody,
    answers: {
      ...ofAll,
      200: answer(
        'Each decided for itself; those that are malformed or could not be recorded have a problem.',
        'BatchResults',
        [],
      ),
      403: refused('A token lacks the scope check.'),
    },
  },
  '/v1/settle': {
    body: settleBody,
    answers: {
      ...ofAll,
      200: answer('Settled, now or by an earlier request to the same cost.', 'Settled', []),
      403: refused('Not by this credential, or not to that cost; or a token lacks the scope check.'),
      404: refused('No decision of this subject that could be settled.'),
      409: refused('It was settled to another cost.'),
      503: refused('Not finished: repeat the request.', 'retryAfter'),
    },
  },
  '/v1/pause': {
    body: pauseBody,
    answers: {
      ...ofAll,
      200: answer('The limit refuses this subject until then.', 'Paused', []),
      403: refused('A credential of a subject names another, or a token lacks the scope check.'),
      503: refused('Redis did not answer. Ask again.', 'retryAfter'),
    },
  },
  '/v1/authorize': {
    answers: {
      200: answer('Allowed.', undefined, ['decision', 'caller']),
      400: refused('The question is malformed; detail says where.', 'forGateways'),
      401: refused('No valid credential.', 'decision', 'authenticate', 'forGateways'),
      403: refused(
        'An untrusted proxy, a cost above the limit, or a refusal under deny_status=403.',
        'decision',
        'retryAfter',
        'forGateways',
        'challenge',
      ),
      413: refused('A cost above the limit, with WEIR_COST_EXCEEDS_STATUS=413.', 'decision', 'forGateways'),
      429: refused(overLimit, 'decision', 'retryAfter', 'challenge', 'forGateways'),
      431: refused(headersTooLarge, 'forGateways'),
      500: refused(fault, 'forGateways'),
      503: refused(unchecked, 'decision', 'retryAfter', 'forGateways'),
    },
  },
} as const satisfies Readonly<Record<string, IngressPath>>

/** What the proxy answers itself. */
export const proxyAnswers: IngressAnswers = {
  303: answer('A limit with a challenge refused a request for a page.', undefined, [
    'decision',
    'challenge',
    'location',
  ]),
  400: refused('The request or its cost cannot be read in one way only.', 'decision'),
  401: unauthorized,
  403: refused('The cost is above what the limit ever admits.', 'decision'),
  404: refused('No upstream for this host.', 'decision'),
  408: refused('The request did not come in time.', 'decision'),
  413: refused('A body that says the cost is too large; or in place of 403.', 'decision'),
  415: refused('A body that says the cost is encoded.', 'decision'),
  429: refused(overLimit, 'decision', 'retryAfter', 'challenge'),
  431: refused(headersTooLarge),
  500: refused(fault),
  502: refused('The upstream could not be reached or broke off.', 'decision'),
  503: refused(unchecked, 'decision', 'retryAfter'),
  504: refused('The upstream gave no answer in time.', 'decision'),
}

/** What the proxy passes on, whose status and body are the upstream's own. */
export const passedAnswer: IngressAnswer = {
  description: "The upstream's answer, with the headers of a decision instead of its own of these names.",
  headers: headers.decision,
  content: { '*/*': {} },
}
