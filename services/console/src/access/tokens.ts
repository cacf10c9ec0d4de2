import { deleteEntity, type Entity, putEntity } from '@weir/policy/entities.ts'
import { type TokenScope, tokenScopes } from '@weir/policy/policy.ts'
import { partSchema } from '@weir/policy/reader/part-schema.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { FastifyInstance } from 'fastify'
import { rootName } from '../http/caller.ts'
import { answerProblem, conflict, policyUnread } from '../http/problems.ts'
import {
  answer,
  closed,
  deleted,
  object,
  operation,
  origin,
  type PageQuery,
  page,
  pageOf,
  pageQuery,
  problems,
  text,
} from '../http/schemas.ts'
import { changing } from '../policy/answer-change.ts'
import { type ChangePlan, type PolicyChanger, reject } from '../policy/change-policy.ts'
import { noEntity } from '../policy/entities.ts'
import type { Ports } from '../ports.ts'
import { makeCredential } from './make-credential.ts'

const tag = 'tokens'
const scopes = {
  type: 'array',
  items: { type: 'string', enum: tokenScopes },
  description: 'what it may do; admin may do everything',
}

const scopesOf = ({ body }: Entity) => (Array.isArray(body.scopes) ? body.scopes.map(String) : [])

/** What is said of a token beyond its name and scopes; absent where nothing is. */
const limits = {
  subjects: {
    type: 'array',
    items: { type: 'string' },
    description: 'it reads what is of these subjects, and nothing else',
  },
  expires: text('RFC 3339; from then on it is refused'),
} as const

interface NewToken {
  readonly name: string
  readonly scopes: readonly TokenScope[]
  readonly subjects?: readonly string[]
  readonly expires?: string
}

/** Everything that is known of a token but its hash. */
const shownToken = (token: Entity) => {
  const { sha256: _, ...body } = token.body
  return { ...body, name: token.name, scopes: scopesOf(token), origin: token.origin }
}

function planCreate(
  state: PolicyState,
  { name, ...given }: NewToken,
): ChangePlan<NewToken & { readonly token: string }> {
  if (name === rootName || state.get('token', name) !== undefined) {
    return reject(conflict(`There is a token ${name}. Delete it first, or choose another name.`))
  }
  const { secret, sha256 } = makeCredential('weir_token_')
  const entity: Entity = { kind: 'token', name, origin: 'admin', position: undefined, body: { sha256, ...given } }
  return {
    kind: 'change',
    changes: [putEntity(entity)],
    lines: [{ what: 'create', kind: 'token', name }],
    answer: { name, ...given, token: secret },
  }
}

function planDelete(state: PolicyState, name: string): ChangePlan<undefined> {
  if (state.get('token', name) === undefined) return reject(noEntity(state, 'token', name))
  const lines = [{ what: 'delete', kind: 'token', name }] as const
  return { kind: 'change', changes: [deleteEntity('token', name)], lines, answer: undefined }
}

/** `GET|POST /v1/tokens`, `DELETE /v1/tokens/{name}`: who may use this API and the check API, and for what. */
export function registerTokens(app: FastifyInstance, ports: Ports, changer: PolicyChanger): void {
  const known = { name: text('who it is, in the audit'), scopes }

  app.get<{ Querystring: PageQuery }>(
    '/v1/tokens',
    operation('admin', tag, 'Tokens there are', {
      query: pageQuery,
      response: {
        200: answer('A page', page(object({ ...known, ...limits, origin }, Object.keys(limits)))),
        ...problems(503),
      },
    }),
    async ({ query: { after = '', limit } }, reply) => {
      const { state } = ports.policy
      if (state === undefined) return answerProblem(reply, policyUnread)
      const found = state.page('token', after, limit + 1)
      return pageOf(found.map(shownToken), limit, ({ name }) => name)
    },
  )

  app.post<{ Body: NewToken }>(
    '/v1/tokens',
    operation('admin', tag, 'Make a token; the answer is the only one that shows it', {
      body: closed(
        { name: { type: 'string', maxLength: 64 }, scopes: { ...scopes, minItems: 1, uniqueItems: true }, ...limits },
        ['name', 'scopes'],
      ),
      described: { body: partSchema('tokens') },
      response: {
        201: answer(
          'The token',
          object({ ...known, ...limits, token: text('shown this once, kept nowhere') }, Object.keys(limits)),
        ),
        ...problems(409, 422, 503),
      },
    }),
    changing(changer, 201, (state, { body }) => planCreate(state, body)),
  )

  app.delete<{ Params: { readonly name: string } }>(
    '/v1/tokens/:name',
    operation('admin', tag, 'Delete a token: it is refused everywhere within a second', {
      params: object({ name: text('of the token') }),
      response: { 204: deleted('Deleted'), ...problems(404, 422, 503) },
    }),
    changing(changer, 204, (state, { params: { name } }) => planDelete(state, name)),
  )
}
