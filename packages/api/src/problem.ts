import { list, object, oneOf, optional, text, texts, whole } from './schema.ts'
import { Type } from './type.ts'

/** An answer that says what is wrong (RFC 9457). */
const problem = object(
  {
    type: text('the kind of error, as listed in docs/errors.md'),
    title: text('the kind of error in a few words'),
    status: whole('HTTP status'),
    detail: text('what is wrong with this request and how to fix it'),
    problems: optional(
      list(
        object({
          path: text('path in the policy'),
          message: text('what is wrong'),
          line: optional(whole('line in the file')),
          column: optional(whole('column in the file')),
        }),
        'all errors of a rejected change',
      ),
    ),
    scope: optional(text('the scope that the token lacks')),
  },
  'RFC 9457; docs/errors.md lists the types',
)

const standard = (type: string) => `https://iana.org/assignments/http-problem-types#${type}`
const own = (type: string) => `urn:weir:problem:${type}`

/** What is wrong with a request to the ingress, and which limits refused it. */
export const checkProblem = object(
  {
    // docs/errors.md says what each means.
    type: oneOf([
      ...['quota-exceeded', 'temporary-reduced-capacity', 'abnormal-usage-detected'].map(standard),
      ...['bad-request', 'unauthorized', 'forbidden', 'scope-missing', 'untrusted-proxy'].map(own),
      ...['not-found', 'method-not-allowed', 'cost-exceeds-limit', 'too-many-open', 'cost-unreadable'].map(own),
      ...['blocked', 'suspended'].map(own),
      ...['no-upstream', 'upstream-timeout', 'upstream-unreachable', 'upstream-busy', 'headers-too-large'].map(own),
      ...['internal', 'unknown-decision', 'settlement-too-high', 'conflict', 'settlement-unavailable'].map(own),
      ...['limits-unavailable', 'unmetered-route', 'unpriced-model', 'credential-missing'].map(own),
    ]),
    title: Type.String(),
    status: whole(undefined, { minimum: 400, maximum: 599 }),
    detail: Type.String(),
    'violated-policies': optional(texts('Names of limits.')),
    scope: optional(Type.String()),
    challenge: optional(text('For quota-exceeded: address of the challenge page.')),
    unit: optional(text('For quota-exceeded: what the limit counts, if neither costs nor requests.')),
    held: optional(whole('For quota-exceeded: how much of that open requests hold.', { minimum: 1 })),
    at: optional(text('For quota-exceeded: the ancestor that the limit counts, if it is not of the subject itself.')),
    settled_cost: optional(whole('For conflict: the cost that the decision was settled to.', { minimum: 0 })),
    settled_units: optional(
      Type.Unsafe<Record<string, number>>({
        type: 'object',
        additionalProperties: { type: 'integer', minimum: 0 },
        description: 'For conflict: the units that the decision was settled to.',
      }),
    ),
    cost_max: optional(whole('For settlement-too-high: the highest cost that it can be settled to.', { minimum: 0 })),
  },
  'An RFC 9457 problem.',
)

const words: Readonly<Record<number, string>> = {
  400: 'The request is malformed',
  401: 'No valid token',
  403: 'The token lacks the scope',
  404: 'Not found',
  409: 'Conflicts with the current state',
  412: 'If-Match or If-None-Match does not hold',
  413: 'The body is too large',
  414: 'A name in the path is too long',
  415: 'Unsupported body type',
  422: 'The content is invalid, or the request asks for too much; nothing was changed',
  431: 'The headers or the URL are too large',
  429: 'Too many requests; try again after Retry-After',
  503: 'A server is down; try again after Retry-After',
  504: 'The answer took too long; request less data',
}

/** Returns error answers by status. */
export const problemAnswers = (statuses: readonly number[]) =>
  Object.fromEntries(
    statuses.map((status) => [
      status,
      { description: words[status] ?? '', content: { 'application/problem+json': { schema: problem } } },
    ]),
  )
