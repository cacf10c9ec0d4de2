import {
  canonicalJson,
  type EntityChange,
  type EntityKind,
  type JsonObject,
  type JsonValue,
} from '@weir/policy/entities.ts'
import type { TokenScope } from '@weir/policy/policy.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import type { FastifyRequest } from 'fastify'
import { missingScope } from './authorize.ts'

/** Whether two bodies differ in anything but these keys. */
function differBeyond(keys: readonly string[], before: JsonObject | undefined, after: JsonObject): boolean {
  const rest = (body: JsonObject) => Object.fromEntries(Object.entries(body).filter(([key]) => !keys.includes(key)))
  return before === undefined || canonicalJson(rest(before)) !== canonicalJson(rest(after))
}

/** What only the environment of Weir's own processes has: addresses with passwords, tokens, secrets. */
const isServiceVariable = (name: JsonValue | undefined) => typeof name === 'string' && name.startsWith('WEIR_')

/** Whether an endpoint reaches private addresses, or sends what a service variable holds. */
const reachesInside = ({ allowPrivate = false, secretEnv, urlEnv }: JsonObject) =>
  allowPrivate !== false || isServiceVariable(secretEnv) || isServiceVariable(urlEnv)

type FurtherScope = (before: JsonObject | undefined, after: JsonObject | undefined) => TokenScope | undefined

const none: FurtherScope = () => undefined
const always =
  (scope: TokenScope): FurtherScope =>
  () =>
    scope

/**
 * What a change of each kind takes beyond `write`, by the body before and after: `admin` for whatever decides where
 * Weir connects within the network or which of its own variables it reads, who is believed, and who may use this API.
 * `undefined` as the body after is a deletion. docs/admin-api.md says what is left to a holder of `write`.
 */
const furtherScopes: Readonly<Record<EntityKind, FurtherScope>> = {
  limit: none,
  plan: none,
  route: none,
  watch: none,
  subject: none,
  // Upstreams are private by nature. A new key of theirs takes `admin` until it stands here.
  upstream: (before, after) => (after !== undefined && differBeyond(['timeout'], before, after) ? 'admin' : undefined),
  endpoint: (before, after) =>
    after !== undefined && reachesInside(after) && differBeyond(['only', 'paused'], before, after)
      ? 'admin'
      : undefined,
  identity: always('admin'),
  token: always('admin'),
  key: always('keys'),
}

/** Why the caller may not make these changes with `write` alone; undefined if it may. */
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
