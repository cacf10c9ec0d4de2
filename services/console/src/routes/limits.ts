import { encodeReset } from '@weir/contracts/policy.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import { type AskedLimits, findAskedLimits, type LimitQuestion } from '@weir/redis/asked-limits.ts'
import type { ChangedLimits, LimitChange } from '@weir/redis/change-limits.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import { type Problem, problemType } from '@weir/runtime/problem.ts'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { PolicyChanger } from '../change-policy.ts'
import { answerChange } from '../http/answer-change.ts'
import { answerProblem, badRequest, limitsUnavailable, policyUnavailable } from '../http/problems.ts'
import { answer, object, problems, text } from '../http/schemas.ts'
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

const fields: Readonly<Record<string, object>> = {
  limit: { type: 'string', description: 'only this limit' },
  ip: { type: 'string', description: 'for limits counted by address' },
  key_id: { type: 'string', description: 'for limits counted by key: the id of the key' },
  route: { type: 'string', description: 'only what counts for this request, such as `POST /v1/search`' },
}

function questionOf(subject: string, { limit, ip, key_id, route }: Body): LimitQuestion {
  return {
    subject,
    ...(limit === undefined ? {} : { limit }),
    ...(ip === undefined ? {} : { ip }),
    ...(key_id === undefined ? {} : { keyId: key_id }),
    ...(route === undefined ? {} : { route }),
  }
}

type Found =
  | { readonly kind: 'found'; readonly asked: AskedLimits }
  | { readonly kind: 'problem'; readonly problem: Problem }

function find({ policy: { state } }: Ports, question: LimitQuestion): Found {
  if (state === undefined) return { kind: 'problem', problem: policyUnavailable('The policy was not read yet.') }
  const found = findAskedLimits(state.policy, question, addressScope)
  if (found.kind === 'found') return found
  if (found.kind === 'malformed') return { kind: 'problem', problem: badRequest(`${found.field} ${found.message}`) }
  const problem = { type: problemType('unknown-name'), title: 'Not found', status: 404, detail: found.message }
  return { kind: 'problem', problem }
}

/** What Redis said is for the log: it may hold an address or a user. */
function redisProblem(error: unknown, log: FastifyBaseLogger): Problem {
  if (!(error instanceof WeirError)) throw error
  log.error({ err: error }, 'limits could not be reached')
  return limitsUnavailable('Redis did not answer. What was done may be half of it; it is safe to repeat.')
}

function registerChange(app: FastifyInstance, ports: Ports, changer: PolicyChanger, change: LimitChange): void {
  app.post<{ Params: { readonly id: string }; Body: Body | null }>(
    `/v1/subjects/:id/limits/${change}`,
    {
      config: { scope: 'limits' },
      schema: {
        tags: ['limits'],
        summary: what[change],
        params: object({ id: text('of the subject') }),
        body: { type: ['object', 'null'], additionalProperties: false, properties: fields },
        response: {
          200: answer(
            'What was done',
            object({
              subject: text('whose'),
              changed: {
                type: 'array',
                items: object({
                  name: text('of the limit'),
                  keys: { type: 'integer', description: 'keys that were there' },
                  used_up: {
                    type: 'integer',
                    description:
                      'counts of an unblocked limit without room for one unit: the next request blocks again',
                  },
                }),
              },
              left: {
                type: 'array',
                items: object({ name: text('of the limit'), because: text('why it is as it was') }),
              },
            }),
          ),
          ...problems(404, 503),
        },
      },
    },
    async ({ params: { id }, body, by, log }, reply) => {
      const { changeCounts } = ports
      if (changeCounts === undefined) return answerProblem(reply, limitsUnavailable(noRedis))
      const question = questionOf(id, body ?? {})
      const done: ChangedLimits[] = []
      const changed = await changer.change(by, () => {
        const found = find(ports, question)
        if (found.kind === 'problem') return found
        // Redis first: who hears the notice looks there again.
        const before = async () => {
          try {
            done[0] = await changeCounts(found.asked, question, change)
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
      const [result] = done
      if (changed.kind === 'problem' && result !== undefined) {
        const limits = result.changed.map(({ name }) => name)
        log.warn({ by, subject: id, change, limits }, 'limits were changed without an entry in the audit')
        return answerProblem(reply, policyUnavailable(unaudited))
      }
      return answerChange(reply, changed, () => result)
    },
  )
}

/** `POST /v1/subjects/{id}/limits/reset|unblock`. Processes drop the refusals that they remember as soon as they hear. */
export function registerLimitChanges(app: FastifyInstance, ports: Ports, changer: PolicyChanger): void {
  for (const change of ['reset', 'unblock'] as const) registerChange(app, ports, changer, change)
}
