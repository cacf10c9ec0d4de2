import { encodeReset } from '@weir/contracts/policy.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import { type AskedLimits, findAskedLimits, type LimitQuery } from '@weir/redis/asked-limits.ts'
import type { ChangedLimits, LimitChange } from '@weir/redis/limit-admin.ts'
import { isRedisFault } from '@weir/redis/limit-connection.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { type PolicyChanger, type Rejected, reject } from '../change-policy.ts'
import { answerChange } from '../http/answer-change.ts'
import { answerProblem, limitsUnavailable, policyUnavailable, policyUnread, unknown } from '../http/problems.ts'
import { answer, object, operation, optionalBody, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'

const what: Readonly<Record<LimitChange, string>> = {
  reset: 'Forget what was counted, and lift blocks',
  unblock: 'Lift blocks; what was counted stays',
}

/** Repeating it does no harm, and brings the entry. */
const unaudited =
  'Redis has done it, but Kafka did not confirm its entry in the audit, and processes may refuse from memory for a while. Repeat it when Kafka is back.'

const noRedis = 'This console was started without WEIR_REDIS_URL, so it cannot reach what limits have counted.'

interface Body {
  readonly limit?: string
  readonly ip?: string
  readonly key_id?: string
  readonly route?: string
}

const fields = {
  limit: text('only this limit'),
  ip: text('for limits counted by address'),
  key_id: text('for limits counted by key: the id of the key'),
  route: text('only what counts for this request, such as `POST /v1/search`'),
}

const limitOf = text('of the limit')
const done = object({
  subject: text('whose'),
  changed: {
    type: 'array',
    items: object({
      name: limitOf,
      keys: { type: 'integer', description: 'keys that were there' },
      used_up: {
        type: 'integer',
        description: 'counts of an unblocked limit without room for one unit: the next request blocks again',
      },
    }),
  },
  left: { type: 'array', items: object({ name: limitOf, because: text('why it is as it was') }) },
})

function find(
  { policy: { state } }: Ports,
  question: LimitQuery,
): Rejected | { readonly kind: 'found'; readonly asked: AskedLimits } {
  if (state === undefined) return reject(policyUnread)
  const found = findAskedLimits(state.policy, question, addressScope)
  if (found.kind === 'found') return found
  return reject(found.kind === 'malformed' ? badRequest(`${found.field} ${found.message}`) : unknown(found.message))
}

/** Only the log gets Redis's own words: they may hold an address or a user. */
function redisProblem(error: unknown, log: FastifyBaseLogger): Problem {
  if (!(error instanceof WeirError) && !isRedisFault(error)) throw error
  log.error({ err: error }, 'limits could not be reached')
  return limitsUnavailable('Redis did not answer. What was done may be half of it; it is safe to repeat.')
}

function registerChange(app: FastifyInstance, ports: Ports, changer: PolicyChanger, change: LimitChange): void {
  app.post<{ Params: { readonly id: string }; Body: Body | null }>(
    `/v1/subjects/:id/limits/${change}`,
    operation('limits', 'limits', what[change], {
      params: object({ id: text('of the subject') }),
      body: optionalBody(fields),
      response: { 200: answer('What was done', done), ...problems(404, 503) },
    }),
    async ({ params: { id }, body, by, log }, reply) => {
      const { changeCounts } = ports
      if (changeCounts === undefined) return answerProblem(reply, limitsUnavailable(noRedis))
      const { key_id: keyId, ...rest } = body ?? {}
      const question = { subject: id, ...rest, ...(keyId === undefined ? {} : { keyId }) }
      let result: ChangedLimits | undefined
      const changed = await changer.change(by, () => {
        const found = find(ports, question)
        if (found.kind === 'problem') return found
        // Redis first: a process that receives the notice asks Redis again.
        const before = async () => {
          try {
            result = await changeCounts(found.asked, question, change)
            return undefined
          } catch (error) {
            return redisProblem(error, log)
          }
        }
        const lines = [
          { what: change, kind: 'subject', name: id } as const,
          ...found.asked.limits.map(({ limit }) => ({ what: change, kind: 'limit', name: limit.name }) as const),
        ]
        return { kind: 'change', changes: [], lines, notices: encodeReset(id), before, answer: undefined }
      })
      if (changed.kind === 'problem' && result !== undefined) {
        const limits = result.changed.map(({ name }) => name)
        log.warn({ by, subject: id, change, limits }, 'limits were changed without an entry in the audit')
        return answerProblem(reply, policyUnavailable(unaudited))
      }
      return answerChange(reply, changed, () => result)
    },
  )
}

/** `POST /v1/subjects/{id}/limits/reset|unblock`. Processes drop their cached denials when they get the notice. */
export function registerLimitChanges(app: FastifyInstance, ports: Ports, changer: PolicyChanger): void {
  for (const change of ['reset', 'unblock'] as const) registerChange(app, ports, changer, change)
}
