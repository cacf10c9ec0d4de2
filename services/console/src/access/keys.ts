import { createKey, type Key, listKeys, type MadeKey, revokeKey, rotateKey } from '@weir/api/access.ts'
import type { BodyOf } from '@weir/api/operation.ts'
import type { ChangeLineV1 } from '@weir/contracts/policy.v1.ts'
import { type JsonValue, putEntity } from '@weir/policy/entities.ts'
import { parseDurationMs, parseTimeMs } from '@weir/policy/policy-values.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type ChangePlan, type PolicyChanger, reject } from '@weir/policy-changes/change-policy.ts'
import { conflict } from '@weir/policy-changes/change-problems.ts'
import {
  endedKeys,
  findKey,
  isRevoked,
  keyFacts,
  keyUntil,
  newKey,
  revokedKey,
} from '@weir/policy-changes/key-changes.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { pageOf } from '../http/page.ts'
import { answerProblem, unknownName } from '../http/problems.ts'
import { serve, servePolicy } from '../http/serve.ts'
import { answerChange, serveChange } from '../policy/answer-change.ts'
import { noEntity } from '../policy/entities.ts'
import type { Sources } from '../sources.ts'
import { makeCredential } from './make-credential.ts'

/** Of a key, for lists: `weir_` and four of its 43 random characters, too few to be of use. */
const shownCharacters = 9

type NewKeyBody = NonNullable<BodyOf<typeof createKey>>

function* keyIds(state: PolicyState): Iterable<string> {
  for (const key of state.list('key')) if (!isRevoked(key)) yield keyFacts(key).id
}

const noKey = (state: PolicyState, id: string) => unknownName('key with the id', id, keyIds(state))

function planCreate(
  state: PolicyState,
  subject: string,
  { id, expires }: NewKeyBody,
  nowMs: number,
  limits?: JsonValue,
): Exclude<ChangePlan<MadeKey>, { kind: 'nothing' }> {
  if (state.get('subject', subject) === undefined) return reject(noEntity(state, 'subject', subject))
  if (id !== undefined && state.keyOfId(id) !== undefined) {
    return reject(conflict(`The key id ${JSON.stringify(id)} is or was in use. Choose another id.`))
  }
  const expiresAtMs = expires === undefined ? undefined : parseTimeMs(expires)
  if (expires !== undefined && (expiresAtMs === undefined || expiresAtMs <= nowMs)) {
    return reject(badRequest('expires must be a time in the future, such as 2030-01-31T00:00:00Z'))
  }
  const { secret, sha256 } = makeCredential('weir_')
  const issue = { at: new Date(nowMs).toISOString(), prefix: secret.slice(0, shownCharacters) }
  const entity = newKey({ sha256, subject, id, expiresAtMs, issue, limits })
  const facts = keyFacts(entity)
  const changes = [putEntity(entity), ...endedKeys(state, subject, nowMs)]
  const lines = [{ what: 'create', kind: 'key', name: facts.id }] as const
  return { kind: 'change', changes, lines, answer: { ...facts, key: secret } }
}

/** The new key has the old one's own limits. The old one ends after the overlap, or when it would have ended anyway. */
function planRotate(
  state: PolicyState,
  oldId: string,
  body: NewKeyBody,
  overlapMs: number,
  nowMs: number,
): ChangePlan<MadeKey & { readonly old: Key }> {
  const old = findKey(state, oldId)
  if (old === undefined) return reject(noKey(state, oldId))
  const plan = planCreate(state, keyFacts(old).subject, body, nowMs, old.body.limits)
  if (plan.kind !== 'change') return plan
  const ended = keyUntil(old, nowMs + overlapMs)
  // It may be among those that have ended already.
  const changes = [...plan.changes.filter(({ name }) => name !== old.name), putEntity(ended)]
  const lines: ChangeLineV1[] = [{ what: 'rotate', kind: 'key', name: oldId }, ...plan.lines]
  return { kind: 'change', changes, lines, answer: { ...plan.answer, old: keyFacts(ended) } }
}

function planRevoke(state: PolicyState, id: string): ChangePlan<undefined> {
  const key = findKey(state, id)
  if (key === undefined) return reject(noKey(state, id))
  const lines = [{ what: 'revoke', kind: 'key', name: id }] as const
  return { kind: 'change', changes: [revokedKey(key)], lines, answer: undefined }
}

/**
 * Lists all keys by hash, or those of a subject, from behind the key of the id `after`. Undefined where there is no
 * such key.
 */
function pageOfKeys(state: PolicyState, subject: string | undefined, after: string | undefined, limit: number) {
  const from = after === undefined ? '' : state.keyOfId(after)
  if (from === undefined) return undefined
  const found: Key[] = []
  const take = (key: ReturnType<PolicyState['get']>) => {
    if (key !== undefined && !isRevoked(key)) found.push(keyFacts(key))
  }
  if (subject !== undefined) {
    for (const sha256 of state.keysOf(subject).toSorted()) if (sha256 > from) take(state.get('key', sha256))
  } else {
    let at = from
    while (found.length <= limit) {
      const some = state.page('key', at, limit + 1)
      some.forEach(take)
      at = some.at(-1)?.name ?? ''
      if (some.length <= limit) break
    }
  }
  return pageOf(found, limit, ({ id }) => id)
}

/** `POST /v1/subjects/{id}/keys`, `GET /v1/keys`, `POST /v1/keys/{id}/rotate`, `DELETE /v1/keys/{id}`. */
export function registerKeys(app: FastifyInstance, sources: Sources, changer: PolicyChanger): void {
  const { clock } = sources
  servePolicy(app, sources, listKeys, async (state, { query: { subject, after, limit } }, reply) => {
    if (subject !== undefined && state.get('subject', subject) === undefined) {
      return answerProblem(reply, noEntity(state, 'subject', subject))
    }
    const found = pageOfKeys(state, subject, after, limit)
    return found ?? answerProblem(reply, badRequest('`after` must be the `next` value of an earlier page'))
  })

  serveChange(app, changer, createKey, (state, { params: { id }, body }) =>
    planCreate(state, id, body ?? {}, clock.nowMs()),
  )

  serve(app, rotateKey, async ({ params: { id }, body, by }, reply) => {
    const { overlap = '24h', ...fresh } = body ?? {}
    // `0s` is no duration of a policy; here it ends the old key immediately.
    const overlapMs = overlap === '0s' ? 0 : parseDurationMs(overlap)
    if (overlapMs === undefined)
      return answerProblem(reply, badRequest('overlap must be a duration such as 24h, or 0s'))
    const changed = await changer.change(by, (state) => planRotate(state, id, fresh, overlapMs, clock.nowMs()))
    return answerChange(reply.header('cache-control', 'no-store'), changed, (key) => reply.code(201).send(key))
  })

  serveChange(app, changer, revokeKey, (state, { params: { id } }) => planRevoke(state, id))
}
