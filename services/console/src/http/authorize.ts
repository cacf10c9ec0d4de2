import type { Reach } from '@weir/core/usage/reach.ts'
import type { TokenScope } from '@weir/policy/access-token.ts'
import {
  canonicalJson,
  type EntityChange,
  type EntityKind,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type Problem, problem, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { CallerFinder, FoundCaller } from './caller.ts'
import type { Sessions } from './sessions.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope that a token needs for this route; a route without one is open to every caller. */
    scope?: TokenScope
    /** Another scope that opens the route as well: what its holder may change, the holder may find. */
    orScope?: TokenScope
    /** `own`: also open to callers who are limited to subjects, for these. Others are closed to them. */
    reach?: 'own'
    /** An answer without an end. */
    isLive?: true
  }
  interface FastifyRequest {
    /** Name of the caller's token, `root` for the one of the environment. */
    by: string
    /** What the caller may do; null without a valid token. */
    scopes: readonly TokenScope[] | null
    /** Whose rows the caller may read. Absent without a valid credential. */
    reach: Reach
    /** Whether the credential still opens this route with this reach: asked for as long as an answer lasts. */
    isStillAllowed: () => Promise<boolean>
  }
}

/** Returns the problem of a caller that lacks this scope; undefined if the caller has it. */
export function missingScope(
  { by, scopes }: Pick<FastifyRequest, 'by' | 'scopes'>,
  scope: TokenScope,
): Problem | undefined {
  if (scopes?.includes(scope) || scopes?.includes('admin')) return undefined
  const detail = `The token ${by} lacks the scope ${scope}; it has ${scopes?.join(', ')}.`
  return { ...problem('scope-missing', 'Forbidden', 403, detail), scope }
}

/** Answers a request without a caller. */
export function answerRefused(reply: FastifyReply, { problem, retryAfterS }: FoundCaller & { kind: 'refused' }) {
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer')
  if (retryAfterS !== undefined) reply.header('retry-after', retryAfterS)
  return sendProblem(reply, problem)
}

/** The problem of a caller who is limited to subjects and asks for more. It says nothing of anybody else. */
export const subjectForbidden = ({ by }: FastifyRequest): Problem =>
  problem('subject-forbidden', 'Forbidden', 403, `${by} may only read the usage of its own subjects.`)

/**
 * Admits each caller to the routes that its scopes name; one that is limited to subjects to those with reach `own`,
 * whatever scope the others need for them.
 */
export function requireCallers(app: FastifyInstance, findCredential: CallerFinder, sessions: Sessions): void {
  const findCaller = (request: FastifyRequest) =>
    sessions.isOf(request.headers) ? sessions.findCaller(request) : findCredential(request.headers, request.raw)
  app.decorateRequest('by', '')
  app.decorateRequest('scopes', null)
  app.decorateRequest('reach')
  app.decorateRequest('isStillAllowed', async function (this: FastifyRequest) {
    const { scope } = this.routeOptions.config
    const found = await findCaller(this)
    if (found.kind === 'refused') return false
    const { reach } = found.caller
    const hasScope = scope === undefined || missingScope(found.caller, scope) === undefined
    return hasScope && reach.isOwn === this.reach.isOwn && reach.covers(this.reach.subjects ?? [])
  })
  app.addHook('onRoute', ({ url, config }) => {
    if (url.startsWith('/v1/') && config?.scope === undefined) throw new Error(`the route ${url} needs no scope`)
  })
  app.addHook('onRequest', async (request, reply) => {
    const { scope, orScope, reach } = request.routeOptions.config
    if (scope === undefined && request.routeOptions.url !== undefined) return
    const found = await findCaller(request)
    if (found.kind === 'refused') return answerRefused(reply, found)
    Object.assign(request, found.caller)
    if (request.reach.isOwn) return reach === 'own' ? undefined : sendProblem(reply, subjectForbidden(request))
    if (orScope !== undefined && missingScope(request, orScope) === undefined) return undefined
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

/** Returns whether an endpoint reaches private addresses, or sends a service variable, by any key. */
const reachesInside = ({ allowPrivate = false, ...others }: JsonObject) =>
  allowPrivate !== false || Object.entries(others).some(([key, name]) => key.endsWith('Env') && isServiceVariable(name))

/** Returns the webhook of a subject's contact. */
function webhookOf(body: JsonObject | undefined): JsonObject | undefined {
  const contact = body?.contact
  const webhook = isJsonObject(contact) ? contact.webhook : undefined
  return isJsonObject(webhook) ? webhook : undefined
}

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
  rateCard: none,
  route: none,
  refusal: none,
  meter: none,
  watch: none,
  silence: none,
  block: none,
  unsubscribed: none,
  ownAlerts: none,
  subject: (before, after) => {
    const webhook = webhookOf(after)
    if (webhook === undefined || !reachesInside(webhook)) return undefined
    return differBeyond([], webhookOf(before), webhook) ? 'admin' : undefined
  },
  // Upstreams are private by nature. A key that is added to them needs `admin` until it is listed here.
  upstream: (before, after) => (after !== undefined && differBeyond(['timeout'], before, after) ? 'admin' : undefined),
  endpoint: (before, after) =>
    after !== undefined && reachesInside(after) && differBeyond(['only', 'paused'], before, after)
      ? 'admin'
      : undefined,
  identity: always('admin'),
  token: always('admin'),
  portal: always('keys'),
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
    return { ...problem, detail: `${problem.detail} Changing ${what} requires that scope.` }
  }
  return undefined
}
