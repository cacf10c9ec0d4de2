import type { TokenScope } from '@weir/policy/access-token.ts'
import type { TObject, TProperties, TSchema } from 'typebox'
import { problemAnswers } from './problem.ts'
import { closed, type Of, object } from './schema.ts'
import { Type } from './type.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

type Answers = Readonly<Record<number, TSchema>>

/** One operation of an API, by which a server answers and a client asks. */
export interface Operation<
  Params extends TSchema = TSchema,
  Query extends TSchema = TSchema,
  Body extends TSchema = TSchema,
  Answer extends Answers = Answers,
> {
  readonly method: Method
  /** As a router takes it: `/v1/keys/:id`. */
  readonly path: string
  readonly tag: string
  readonly summary: string
  /** The scope that a token needs; absent: open to every caller. */
  readonly scope?: TokenScope
  /** Another scope that opens it as well: what its holder may change, the holder may find. */
  readonly orScope?: TokenScope
  /** `own`: also open to callers who are limited to subjects; the handler keeps to their reach. */
  readonly reach?: 'own'
  /** An answer without an end. */
  readonly isLive?: true
  readonly params?: Params
  readonly query?: Query
  /** Whether the handler reads the query by a grammar of its own, which reports everything that is wrong. */
  readonly isParsed?: true
  readonly headers?: TSchema
  readonly body?: Body
  readonly consumes?: readonly string[]
  /** Whether a body of any type is taken. */
  readonly isAnyType?: true
  /** By status. */
  readonly answers: Answer
  /** Statuses of its errors beyond those that every operation has. */
  readonly problems?: readonly number[]
}

interface Parts<Params, Query, Body extends TSchema, Answer extends Answers>
  extends Omit<Operation<TSchema, TSchema, Body, Answer>, 'method' | 'path' | 'params' | 'query'> {
  readonly params?: Params
  /** Other parameters are rejected. */
  readonly query?: Query
}

/** Describes an operation. `line` is its method and path: `GET /v1/keys/:id`. */
export function operation<
  const Answer extends Answers,
  Params extends TProperties = Record<never, never>,
  Query extends TProperties = Record<never, never>,
  Body extends TSchema = TSchema,
>(
  line: `${Method} /${string}`,
  { params, query, ...parts }: Parts<Params, Query, Body, Answer>,
): Operation<TObject<Params>, TObject<Query>, Body, Answer> {
  const [method = '', path = ''] = line.split(' ')
  return {
    method: method as Method,
    path,
    ...parts,
    ...(params === undefined ? {} : { params: object(params) }),
    ...(query === undefined ? {} : { query: closed(query) }),
  }
}

/** The parameters in the path of an operation. */
export type ParamsOf<O> = O extends Operation<infer Params> ? Of<Params> : never
/** The query of an operation, as its handler reads it. */
export type QueryOf<O> = O extends Operation<TSchema, infer Query> ? Of<Query> : never
/** The body of a request. */
export type BodyOf<O> = O extends Operation<TSchema, TSchema, infer Body> ? Of<Body> : never
/** The JSON of an answer that is no problem. */
export type AnswerOf<O> = O extends { readonly answers: infer All } ? Of<Extract<All[keyof All], TSchema>> : never

/** An answer with a JSON body. */
export const answer = <Schema extends TSchema>(description: string, schema: Schema) =>
  Type.Unsafe<Of<Schema>>({ ...schema, description })
/** An answer without a body. */
export const noBody = (description: string) => Type.Unsafe<undefined>({ description, type: 'null' })
/** An answer of several media types, which its handler writes itself. */
export const media = <const Types extends Readonly<Record<string, object>>>(
  description: string,
  types: Types,
  more: object = {},
) =>
  Type.Unsafe<Types extends { readonly 'application/json': infer Schema extends TSchema } ? Of<Schema> : never>({
    description,
    ...more,
    content: Object.fromEntries(Object.entries(types).map(([type, schema]) => [type, { schema }])),
  })

/** The parts of an operation's schema, in the form of Fastify. */
export function schemaOf({ tag, summary, scope, params, query, headers, body, consumes, ...more }: Operation) {
  const { answers, isAnyType, problems = [] } = more
  // Without a body, a name or a query of this size nothing can be refused for these.
  const ofName = params === undefined ? [] : [414]
  const ofBody = body === undefined && consumes === undefined ? [] : isAnyType ? [413] : [413, 415]
  const always = scope === undefined ? [400, 431] : [400, 401, 403, 431]
  return {
    tags: [tag],
    summary,
    ...(scope === undefined ? { security: [] } : {}),
    ...(params === undefined ? {} : { params }),
    ...(query === undefined ? {} : { querystring: query }),
    ...(headers === undefined ? {} : { headers }),
    ...(body === undefined ? {} : { body }),
    ...(consumes === undefined ? {} : { consumes }),
    response: { ...answers, ...problemAnswers([...always, ...problems, ...ofName, ...ofBody]) },
  }
}
