import { list, object, oneOf, optional, text, texts, whole } from './schema.ts'
import { Type } from './type.ts'

/** An answer that says what is wrong (RFC 9457). */
const problem = object(
  {
    type: text('what is wrong, as docs/errors.md lists it'),
    title: text('the same in a word or two'),
    status: whole('of the answer'),
    detail: text('what is wrong with this request, and what to do'),
    problems: optional(
      list(
        object({
          path: text('in the policy'),
          message: text('what is wrong there'),
          line: optional(whole('of the file')),
          column: optional(whole('of the file')),
        }),
        'all that is wrong with a refused change',
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
      own('limits-unavailable'),
    ]),
    title: Type.String(),
    status: whole(undefined, { minimum: 400, maximum: 599 }),
    detail: Type.String(),
    'violated-policies': optional(texts('Names of limits.')),
    scope: optional(Type.String()),
    challenge: optional(text('Of quota-exceeded: the page that lets people in again.')),
    settled_cost: optional(whole('Of a conflict: the cost that the decision was settled to.', { minimum: 0 })),
    cost_max: optional(whole('Of settlement-too-high: the highest cost that it can be settled to.', { minimum: 0 })),
  },
  'An error by RFC 9457.',
)

const words: Readonly<Record<number, string>> = {
  400: 'The request is malformed',
  401: 'No valid token',
  403: 'The token lacks the scope',
  404: 'There is no such thing',
  409: 'It is in the way of something that is there',
  412: 'If-Match or If-None-Match does not hold',
  413: 'The body is too large',
  414: 'A name in the path is too long',
  415: 'The body is of another type',
  422: 'What is sent would not be right, or too much is asked for; nothing was changed',
  431: 'The headers, or the path with its query, are too large',
  429: 'There are too many already; try again after Retry-After',
  503: 'A server is down; try again after Retry-After',
  504: 'The answer took too long; ask for less',
}

/** Returns error answers by status. */
export const problemAnswers = (statuses: readonly number[]) =>
  Object.fromEntries(
    statuses.map((status) => [
      status,
      { description: words[status] ?? '', content: { 'application/problem+json': { schema: problem } } },
    ]),
  )
