import {
  canonicalJson,
  type EntityChange,
  type EntityKind,
  type JsonObject,
  type JsonValue,
} from '@weir/policy/entities.ts'
import type { Lookup, Token, TokenScope } from '@weir/policy/policy.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { createAdminCheck, fingerprint } from '@weir/runtime/admin-token.ts'
import { type Problem, problemType, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope that a token needs for this route; a route without one is open to every caller. */
    scope?: TokenScope
  }
  interface FastifyRequest {
    /** Name of the caller's token, `root` for the one of the environment. */
    by: string
    /** What the caller may do; null without a valid token. */
    scopes: readonly TokenScope[] | null
  }
}

/** The audit's name for a caller with the token of the environment. No token of the policy may have this name. */
export const rootName = 'root'

/** The token of an `Authorization: Bearer` header; empty if there is none. */
const bearer = (authorization = '') => /^bearer (.+)$/i.exec(authorization)?.[1]?.trim() ?? ''

/** Returns the problem of a caller that lacks this scope; undefined if the caller has it. */
export function missingScope({ by, scopes }: FastifyRequest, scope: TokenScope): Problem | undefined {
  if (scopes?.includes(scope) || scopes?.includes('admin')) return undefined
  return {
    type: problemType('scope-missing'),
    title: 'Forbidden',
    status: 403,
    detail: `The token ${by} lacks the scope ${scope}; it has ${scopes?.join(', ')}.`,
    scope,
  }
}

/**
 * Admits the environment's token to everything, and a token of the policy to the routes that its scopes name. Tokens
 * are found by their hash, so that no comparison depends on how much of one was guessed.
 */
export function requireTokens(
  app: FastifyInstance,
  rootSha256: () => string,
  tokens: () => Lookup<Token> | undefined,
): void {
  const isRoot = createAdminCheck(rootSha256)
  app.decorateRequest('by', '')
  app.decorateRequest('scopes', null)
  app.addHook('onRequest', async (request, reply) => {
    const { scope } = request.routeOptions.config
    if (scope === undefined && request.routeOptions.url !== undefined) return
    const hash = fingerprint(bearer(request.headers.authorization))
    if (isRoot(hash)) {
      request.by = rootName
      request.scopes = ['admin']
      return
    }
    const token = hash === '' ? undefined : tokens()?.get(hash)
    if (token === undefined) {
      reply.header('www-authenticate', 'Bearer')
      return sendProblem(reply, {
        type: problemType('unauthorized'),
        title: 'Unauthorized',
        status: 401,
        detail: 'Send a token as "Authorization: Bearer TOKEN".',
      })
    }
    request.by = token.name
    request.scopes = token.scopes
    const problem = scope === undefined ? undefined : missingScope(request, scope)
    return problem === undefined ? undefined : sendProblem(reply, problem)
  })
}

/** Returns whether two bodies differ in any key but these. */
function differBeyond(keys: readonly string[], before: JsonObject | undefined, after: JsonObject): boolean {
  const rest = (body: JsonObject) => Object.fromEntries(Object.entries(body).filter(([key]) => !keys.includes(key)))
  return before === undefined || canonicalJson(rest(before)) !== canonicalJson(rest(after))
}

/** Returns whether the name is of a variable of Weir's own processes: addresses with passwords, tokens, secrets. */
const isServiceVariable = (name: JsonValue | undefined) => typeof name === 'string' && name.startsWith('WEIR_')

/** Returns whether an endpoint reaches private addresses, or sends the value of a service variable. */
const reachesInside = ({ allowPrivate = false, secretEnv, urlEnv }: JsonObject) =>
  allowPrivate !== false || isServiceVariable(secretEnv) || isServiceVariable(urlEnv)

type FurtherScope = (before: JsonObject | undefined, after: JsonObject | undefined) => TokenScope | undefined

const none: FurtherScope = () => undefined
const always =
  (scope: TokenScope): FurtherScope =>
  () =>
    scope

/**
 * The scope that a change of each kind needs beyond `write`, by the body before and after: `admin` for all that decides
 * where Weir connects within the network or which of its own variables it reads, who is believed, and who may use this
 * API. `undefined` as the body after is a deletion. docs/admin-api.md says what is left to a holder of `write`.
 */
const furtherScopes: Readonly<Record<EntityKind, FurtherScope>> = {
  limit: none,
  plan: none,
  price: none,
  route: none,
  watch: none,
  subject: none,
  // Upstreams are private by nature. A key that is added to them needs `admin` until it is listed here.
  upstream: (before, after) => (after !== undefined && differBeyond(['timeout'], before, after) ? 'admin' : undefined),
  endpoint: (before, after) =>
    after !== undefined && reachesInside(after) && differBeyond(['only', 'paused'], before, after)
      ? 'admin'
      : undefined,
  identity: always('admin'),
  token: always('admin'),
  key: always('keys'),
}

/** Returns the problem of a caller that may not make these changes with `write` alone; undefined if it may. */
export function missingChangeScope(
  request: FastifyRequest,
  state: PolicyState,
  changes: readonly EntityChange[],
): Problem | undefined {
  for (const { kind, name, entity } of changes) {
    const scope = furtherScopes[kind](state.get(kind, name)?.body, entity?.body)
    const problem = scope === undefined ? undefined : missingScope(request, scope)
    if (problem === undefined) continue
    const what = kind === 'key' ? 'keys' : `the ${kind} ${JSON.stringify(name)}`
    return { ...problem, detail: `${problem.detail} Changing ${what} takes it.` }
  }
  return undefined
}
