import { type AskedLimits, findAskedLimits, type LimitQuery } from '@weir/redis/asked-limits.ts'
import type { LimitChange, OnForgotten } from '@weir/redis/limit-admin.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem, policyUnread, unknown } from '../http/problems.ts'
import { address, answer, methodAndPath, object, operation, optionalBody, problems, text } from '../http/schemas.ts'
import { type PolicyChanger, type Rejected, reject } from '../policy/change-policy.ts'
import type { Ports } from '../ports.ts'
import { answerCountChange, noRedis } from './count-change.ts'

const what: Readonly<Record<LimitChange, string>> = {
  reset: 'Forget what was counted, and lift blocks',
  unblock: 'Lift blocks; what was counted stays',
}

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

const describedFields = {
  ...fields,
  ip: address(fields.ip.description),
  route: methodAndPath(fields.route.description),
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

/** Finds the limits of a question; a rejection says what is wrong with it. */
export function findLimits(
  { policy: { state } }: Ports,
  question: LimitQuery,
): Rejected | { readonly kind: 'found'; readonly asked: AskedLimits } {
  if (state === undefined) return reject(policyUnread)
  const found = findAskedLimits(state.policy, question, addressScope)
  if (found.kind === 'found') return found
  return reject(found.kind === 'malformed' ? badRequest(`${found.field} ${found.message}`) : unknown(found.message))
}

function registerChange(app: FastifyInstance, ports: Ports, changer: PolicyChanger, change: LimitChange): void {
  app.post<{ Params: { readonly id: string }; Body: Body | null }>(
    `/v1/subjects/:id/limits/${change}`,
    operation('limits', 'limits', what[change], {
      params: object({ id: text('of the subject') }),
      body: optionalBody(fields),
      described: { body: optionalBody(describedFields) },
      response: { 200: answer('What was done', done), ...problems(404, 503) },
    }),
    async (request, reply) => {
      const { id } = request.params
      const { changeCounts } = ports
      if (changeCounts === undefined) return answerProblem(reply, noRedis)
      const { key_id: keyId, ...rest } = request.body ?? {}
      const question = { subject: id, ...rest, ...(keyId === undefined ? {} : { keyId }) }
      return await answerCountChange(request, reply, changer, () => {
        const found = findLimits(ports, question)
        if (found.kind === 'problem') return found
        const lines = [
          { what: change, kind: 'subject', name: id } as const,
          ...found.asked.limits.map(({ limit }) => ({ what: change, kind: 'limit', name: limit.name }) as const),
        ]
        const make = (onForgotten: OnForgotten) => changeCounts(found.asked, question, change, onForgotten)
        return { kind: 'counts', subject: id, lines, make }
      })
    },
  )
}

/** `POST /v1/subjects/{id}/limits/reset|unblock`. Processes drop their cached denials when they get the notice. */
export function registerLimitChanges(app: FastifyInstance, ports: Ports, changer: PolicyChanger): void {
  for (const change of ['reset', 'unblock'] as const) registerChange(app, ports, changer, change)
}
