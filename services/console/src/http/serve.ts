import {
  type AnswerOf,
  type BodyOf,
  type Operation,
  type ParamsOf,
  type QueryOf,
  schemaOf,
} from '@weir/api/operation.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify'
import type { Sources } from '../sources.ts'
import { answerProblem, policyUnread } from './problems.ts'

/** A request of an operation. */
export type RequestOf<O> = FastifyRequest<{ Params: ParamsOf<O>; Querystring: QueryOf<O>; Body: BodyOf<O> }>

/** Answers a request of an operation, with what its contract says or with what it has sent itself. */
export type Handler<O> = (request: RequestOf<O>, reply: FastifyReply) => Promise<AnswerOf<O> | FastifyReply>

/** Serves an operation of the contract. */
export function serve<O extends Operation>(
  app: FastifyInstance,
  operation: O,
  handler: Handler<O>,
  options: RouteShorthandOptions = {},
): void {
  const { method, path, isParsed } = operation
  app.route({
    ...options,
    method,
    url: path,
    config: { ...operation },
    schema: schemaOf(operation),
    // The parser of such a query reports everything that is wrong in one answer.
    ...(isParsed === undefined ? {} : { validatorCompiler: () => () => true }),
    handler: handler as never,
  })
}

/** Serves an operation that needs the policy as the topic holds it. */
export const servePolicy = <O extends Operation>(
  app: FastifyInstance,
  { policy }: Pick<Sources, 'policy'>,
  operation: O,
  handle: (state: PolicyState, ...asked: Parameters<Handler<O>>) => ReturnType<Handler<O>>,
): void =>
  serve(app, operation, async (request, reply) =>
    policy.state === undefined ? answerProblem(reply, policyUnread) : handle(policy.state, request, reply),
  )
