import { pageRows, pageRowsMax } from '@weir/core/usage/read-parameters.ts'
import type { TokenScope } from '@weir/policy/policy.ts'
import type { Described } from './authorize.ts'

/** JSON Schemas that several routes have; the served OpenAPI is made of them. */

const problem = {
  type: 'object',
  description: 'RFC 9457; docs/errors.md lists the types',
  required: ['type', 'title', 'status', 'detail'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    problems: {
      type: 'array',
      description: 'all that is wrong with a refused change',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: {
          path: { type: 'string' },
          message: { type: 'string' },
          line: { type: 'integer' },
          column: { type: 'integer' },
        },
      },
    },
    scope: { type: 'string', description: 'the scope that the token lacks' },
  },
} as const

const problemAnswer = (description: string) => ({
  description,
  content: { 'application/problem+json': { schema: problem } },
})

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
  Object.fromEntries(statuses.map((status) => [status, problemAnswer(words[status] ?? '')]))

/** Returns the error answers of a route by status; every route has 400, 401, 403 and 431. */
export const problems = (...statuses: readonly (404 | 409 | 412 | 422 | 429 | 503 | 504)[]): Record<number, object> =>
  problemAnswers([400, 401, 403, 431, ...statuses])

/** An object with any properties. */
export const anyObject = { type: 'object', additionalProperties: true } as const

/** An answer with a JSON body. */
export const answer = (description: string, schema: object) => ({ description, ...schema })

/** An object with these properties, required but for those named. */
export const object = (properties: Readonly<Record<string, object>>, optional: readonly string[] = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
})

/** A text. */
export const text = (description: string) => ({ type: 'string', description })
/** An address, for descriptions: handlers word what is none better. */
export const address = (description: string) => ({
  ...text(description),
  anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }],
})
/** A request, such as `POST /v1/search`, for descriptions. */
export const methodAndPath = (description: string) => ({ ...text(description), pattern: '^[A-Z]+ /' })
/** A text, or null. */
export const textOrNull = (description: string) => ({ type: ['string', 'null'], description })

/** An object that may have no other properties. */
export const closed = (properties: Readonly<Record<string, object>>, required: readonly string[] = []) => ({
  type: 'object',
  additionalProperties: false,
  ...(required.length === 0 ? {} : { required }),
  properties,
})

/** A body that may be left out. */
export const optionalBody = (properties: Readonly<Record<string, object>>) => ({
  ...closed(properties),
  type: ['object', 'null'],
})

/** An answer without a body. */
export const deleted = (description: string) => ({ description, type: 'null' })

interface Operation {
  readonly params?: object
  /** Properties of the query; others are rejected. */
  readonly query?: Readonly<Record<string, object>>
  /** Properties that the query must have. */
  readonly required?: readonly string[]
  readonly body?: object
  readonly headers?: object
  readonly consumes?: string[]
  readonly response: Readonly<Record<number, object>>
  /** Open to callers who are limited to subjects, too: the handler keeps to their reach. */
  readonly reach?: 'own'
  /** What the description says in place of what Fastify checks: the handler words these rules better. */
  readonly described?: Described
}

/** What a body can be refused for before anybody reads it. */
export const ofBodies = problemAnswers([413, 415])
/** What a name in a path can be refused for. */
const ofNames = problemAnswers([414])

/** Returns the options of a route: the scope that a token needs, and the operation in the served OpenAPI. */
export const operation = (
  scope: TokenScope,
  tag: string,
  summary: string,
  { query, required, reach, described, response, ...schema }: Operation,
) => ({
  config: { scope, ...(reach === undefined ? {} : { reach }), ...(described === undefined ? {} : { described }) },
  schema: {
    tags: [tag],
    summary,
    ...(query === undefined ? {} : { querystring: closed(query, required) }),
    ...schema,
    response: {
      ...response,
      ...(schema.params === undefined ? {} : ofNames),
      ...(schema.body === undefined && schema.consumes === undefined ? {} : ofBodies),
    },
  },
})

/** Returns the schema of a page; its `next` is the `after` of the next page. */
export const page = (items: object) =>
  object({ items: { type: 'array', items }, next: textOrNull('`after` of the next page; null on the last') })

/** The query parameters of a page. */
export const pageQuery = {
  after: { type: 'string', maxLength: 512, description: '`next` of the page before' },
  limit: { type: 'integer', minimum: 1, maximum: pageRowsMax, default: pageRows, description: 'rows of a page' },
} as const

/** The query of a page, as a handler gets it. */
export interface PageQuery {
  readonly after?: string
  readonly limit: number
}

/**
 * Makes a page of rows of which one more was read than the page may have; `nextOf` gives `next` by the page's last row.
 */
export function pageOf<T>(found: readonly T[], limit: number, nextOf: (last: T) => string) {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return { items, next: found.length > limit && last !== undefined ? nextOf(last) : null }
}

/** The schema of an entity's origin. */
export const origin = {
  type: 'string',
  enum: ['file', 'admin'],
  description: 'who has made it: weir apply, or this API',
}
