import { type ChangeLineV1, encodeReset } from '@weir/contracts/policy.v1.ts'
import type { ForgottenCount } from '@weir/core/audit/quota.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { PolicyChanger, Rejected } from '@weir/policy-changes/change-policy.ts'
import { policyUnavailable } from '@weir/policy-changes/change-problems.ts'
import type { OnForgotten } from '@weir/redis/limit-admin.ts'
import { isRedisFault } from '@weir/redis/limit-connection.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import { answerProblem, limitsUnavailable } from '../http/problems.ts'
import { answerChange } from '../policy/answer-change.ts'

/** Repeating it does no harm, and brings the entry. */
const unaudited =
  'Redis made the change, but Kafka did not confirm the audit entry. Processes may refuse requests for a while, based on cached counts. If Redis loses its data, the old counts return. Repeat the request when Kafka is available.'

/** Resets that Kafka did not confirm, by limit: some kilobytes each, and operators repeat them. */
const unconfirmedMax = 100
const unconfirmed = new Map<string, readonly ForgottenCount[]>()

/** The problem of a route that needs Redis where none is configured. */
export const noRedis = limitsUnavailable(
  'This console was started without WEIR_REDIS_URL, so it cannot reach what limits have counted.',
)

const mayBeHalf = 'Redis did not respond, so the change may be incomplete. Repeat the request; repeating it is safe.'

/** Only the log gets Redis's own words: they may hold an address or a user. */
export function redisProblem(error: unknown, log: FastifyBaseLogger, detail = mayBeHalf): Problem {
  if (!(error instanceof WeirError) && !isRedisFault(error)) throw error
  log.error({ err: error }, 'limits not reachable')
  return limitsUnavailable(detail)
}

/** A change of counts in Redis, and what is said of it. */
export interface CountChange<T> {
  readonly kind: 'counts'
  /** Whose counts; processes drop their cached denials when they are notified. */
  readonly subject: string
  readonly lines: readonly ChangeLineV1[]
  readonly make: (onForgotten: OnForgotten) => Promise<T>
}

/** Changes counts, notifies every process, writes the audit record and answers with the outcome. Safe to repeat. */
export async function answerCountChange<T extends object>(
  { by, log }: FastifyRequest,
  reply: FastifyReply,
  changer: PolicyChanger,
  plan: () => CountChange<T> | Rejected,
): Promise<T | FastifyReply> {
  let result: T | undefined
  let lines: readonly ChangeLineV1[] = []
  let subject = ''
  const changed = await changer.change(by, () => {
    const planned = plan()
    if (planned.kind === 'problem') return planned
    ;({ lines, subject } = planned)
    // Redis first: a process that receives the notice asks Redis again.
    const before = async () => {
      try {
        result = await planned.make((name, forgotten) => {
          const nameOf = `${subject} ${name}`
          const all = [...(unconfirmed.get(nameOf) ?? []), ...forgotten]
          if (all.length === 0) return
          if (unconfirmed.has(nameOf) || unconfirmed.size < unconfirmedMax) unconfirmed.set(nameOf, all)
          lines = lines.map((line) =>
            line.kind === 'limit' && line.name === name ? { ...line, forgotten: all } : line,
          )
        })
        return undefined
      } catch (error) {
        return redisProblem(error, log)
      }
    }
    const notices = encodeReset(planned.subject)
    // Its lines are complete once the change was made.
    return {
      kind: 'change',
      changes: [],
      notices,
      before,
      answer: undefined,
      get lines() {
        return lines
      },
    }
  })
  if (changed.kind === 'problem' && result !== undefined) {
    log.warn({ by, lines }, 'limits changed without an audit entry')
    return answerProblem(reply, policyUnavailable(unaudited))
  }
  if (changed.kind === 'done') for (const { name } of lines) unconfirmed.delete(`${subject} ${name}`)
  return answerChange(reply, changed, () => result as T)
}
