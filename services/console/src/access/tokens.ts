import { createToken, deleteToken, type ListedToken, listTokens, type NewToken } from '@weir/api/access.ts'
import { deleteEntity, type Entity, putEntity } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type ChangePlan, type PolicyChanger, reject } from '@weir/policy-changes/change-policy.ts'
import { conflict } from '@weir/policy-changes/change-problems.ts'
import type { FastifyInstance } from 'fastify'
import { rootName } from '../http/caller.ts'
import { pageOfEntities } from '../http/page.ts'
import { servePolicy } from '../http/serve.ts'
import { serveChange } from '../policy/answer-change.ts'
import { noEntity } from '../policy/entities.ts'
import type { Sources } from '../sources.ts'
import { makeCredential } from './make-credential.ts'

const scopesOf = ({ body }: Entity) => (Array.isArray(body.scopes) ? body.scopes.map(String) : [])

/** Everything that is known of a token but its hash. */
const shownToken = (token: Entity): ListedToken => {
  const { sha256: _, ...body } = token.body
  return { ...body, name: token.name, scopes: scopesOf(token), origin: token.origin } as ListedToken
}

function planCreate(
  state: PolicyState,
  { name, ...given }: NewToken,
): ChangePlan<NewToken & { readonly token: string }> {
  if (name === rootName || state.get('token', name) !== undefined) {
    return reject(conflict(`The token ${name} already exists. Delete it first, or choose another name.`))
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
export function registerTokens(app: FastifyInstance, sources: Sources, changer: PolicyChanger): void {
  servePolicy(app, sources, listTokens, async (state, { query }) => pageOfEntities(state, 'token', query, shownToken))

  serveChange(app, changer, createToken, (state, { body }) => planCreate(state, body))

  serveChange(app, changer, deleteToken, (state, { params: { name } }) => planDelete(state, name))
}
