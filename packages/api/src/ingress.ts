import type { TSchema } from 'typebox'
import {
  batchBody,
  batchResults,
  checkBody,
  checkResult,
  holdBody,
  pauseBody,
  paused,
  renewed,
  settleBody,
  settled,
} from './check.ts'
import { leasesBody, leasesResults } from './leases.ts'
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
    'Weir-Decision': textHeader('Id of the record; absent on a peek, and if nothing was recorded.'),
    RateLimit: textHeader('Draft 10 (the default dialect).'),
    'RateLimit-Policy': textHeader('In draft 10 or draft 6 syntax.'),
    'RateLimit-Limit': wholeHeader('Dialect draft6.'),
    'RateLimit-Remaining': wholeHeader('Dialect draft6.'),
    'RateLimit-Reset': wholeHeader('Dialect draft6: seconds.'),
    'X-RateLimit-Limit': wholeHeader('Dialect x-ratelimit.'),
    'X-RateLimit-Remaining': wholeHeader('Dialect x-ratelimit.'),
    'X-RateLimit-Reset': wholeHeader('Dialect x-ratelimit: seconds since the epoch.'),
  },
  challenge: { 'Weir-Challenge': textHeader('Address of the challenge page, from a limit with a challenge.') },
  retryAfter: { 'Retry-After': wholeHeader(undefined, 1) },
  authenticate: { 'WWW-Authenticate': always },
  location: { Location: always },
  // The status and the problem of a refusal, for gateways that hand on neither.
  forGateways: {
    'X-Limit-Status': { description: 'With deny_status: the original status.', schema: { type: 'integer' } },
    'X-Weir-Problem': textHeader('With deny_status: the problem, in ASCII.'),
    'Weir-On-Exceed': textHeader('Close the connection without an answer.', { const: 'drop' }),
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
  Renewed: renewed,
  Paused: paused,
  LeasesResults: leasesResults,
}

const unauthorized = refused('No valid credential.', 'decision', 'authenticate')
const unrecorded = 'Not recorded, the policy is stale, or the token issuer returns no keys.'
const headersTooLarge = 'The headers are too large.'
const fault = 'An internal error in Weir.'
const overLimit =
  'Refused by a limit (with the refusal body of the route, if it has its own, in any type), or too many wrong credentials.'
const unchecked = 'Not checked, not recorded, or too many requests are waiting for the upstream.'

/** What any question to the check API may be answered. */
const ofAll: IngressAnswers = {
  400: refused('The request is malformed; `detail` says where.'),
  401: unauthorized,
  413: refused('The body is too large.'),
  415: refused('The body is not application/json.'),
  429: refused(
    'Too many wrong credentials from this address, or too many open decisions of the subject.',
    'decision',
    'retryAfter',
  ),
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
      403: refused('A subject’s credential asks for more than that subject, or a token lacks the scope `check`.'),
      422: refused('A different check was already made with this idempotency_key.'),
    },
  },
  '/v1/check/batch': {
    body: batchBody,
    answers: {
      ...ofAll,
      200: answer(
        'Each check is decided on its own; malformed or unrecorded ones have a `problem`.',
        'BatchResults',
        [],
      ),
      403: refused('The token lacks the scope `check`.'),
    },
  },
  '/v1/leases': {
    body: leasesBody,
    answers: {
      ...ofAll,
      200: answer('Each item is answered on its own; one that cannot be has a `problem`.', 'LeasesResults', []),
      403: refused('A subject’s own credential, or the token lacks the scope `check`.'),
    },
  },
  '/v1/settle': {
    body: settleBody,
    answers: {
      ...ofAll,
      200: answer('Settled, now or by an earlier request with the same cost.', 'Settled', []),
      403: refused('Not allowed with this credential or to that cost, or a token lacks the scope `check`.'),
      404: refused('This subject has no such decision that can be settled.'),
      409: refused('The decision was already settled to a different cost.'),
      503: refused('Not finished: repeat the request.', 'retryAfter'),
    },
  },
  '/v1/release': {
    body: holdBody,
    answers: {
      ...ofAll,
      200: answer('Settled to nothing: all that it held is given back.', 'Settled', []),
      403: refused('Not allowed with this credential, or a token lacks the scope `check`.'),
      404: refused('This subject has no such decision that can be settled.'),
      409: refused('The decision was already settled to something.'),
      503: refused('Not finished: repeat the request.', 'retryAfter'),
    },
  },
  '/v1/renew': {
    body: holdBody,
    answers: {
      ...ofAll,
      200: answer(
        'Renewed: it stays open, and its slots taken, for as long again, at most a day in all.',
        'Renewed',
        [],
      ),
      403: refused('Not allowed with this credential, or a token lacks the scope `check`.'),
      404: refused('This subject has no such decision that can still be settled.'),
      503: refused('Redis did not answer. Try again.', 'retryAfter'),
    },
  },
  '/v1/pause': {
    body: pauseBody,
    answers: {
      ...ofAll,
      200: answer('Paused: the limit refuses this subject until then.', 'Paused', []),
      403: refused('A subject’s credential names another subject, or a token lacks the scope `check`.'),
      503: refused('Redis did not answer. Try again.', 'retryAfter'),
    },
  },
  '/v1/authorize': {
    answers: {
      200: answer('Allowed.', undefined, ['decision', 'caller']),
      400: refused('The request is malformed; `detail` says where.', 'forGateways'),
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
  400: refused('The request or its cost is ambiguous.', 'decision'),
  401: unauthorized,
  403: refused('The cost exceeds what the limit can ever admit.', 'decision'),
  404: refused('This host has no upstream.', 'decision'),
  408: refused('The request did not arrive in time.', 'decision'),
  413: refused('The body that states the cost is too large; or instead of 403.', 'decision'),
  415: refused('The body that states the cost is encoded.', 'decision'),
  429: refused(overLimit, 'decision', 'retryAfter', 'challenge'),
  431: refused(headersTooLarge),
  500: refused(fault),
  502: refused('The upstream was unreachable or closed the connection.', 'decision'),
  503: refused(unchecked, 'decision', 'retryAfter'),
  504: refused('The upstream did not answer in time.', 'decision'),
}

/** What the proxy passes on, whose status and body are the upstream's own. */
export const passedAnswer: IngressAnswer = {
  description: "The upstream's answer; the decision's headers replace headers of the same name.",
  headers: headers.decision,
  content: { '*/*': {} },
}
