import { pauseMsMax } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { explainLimits } from '@weir/policy/match/explain-limits.ts'
import type { Subject } from '@weir/policy/policy.ts'
import { parseDurationMs } from '@weir/policy/policy-values.ts'
import { didYouMean } from '@weir/policy/suggest.ts'
import { type Problem, problemType, sendProblem } from '@weir/runtime/problem.ts'
import { Ajv } from 'ajv'
import type { FastifyInstance } from 'fastify'
import type { PolicyView } from '../policy-view.ts'
import type { Ports } from '../ports.ts'
import { badCheck, whoIsAsked } from './check/answer-check.ts'
import { askedBy, type createAskerCheck } from './check/check-asker.ts'
import { asItComes } from './check/check-body.ts'

interface PauseBody {
  readonly subject?: string
  readonly key?: string
  readonly limit: string
  readonly for: string
}

const pauseSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['limit', 'for'],
  properties: {
    subject: {
      type: 'string',
      minLength: 1,
      maxLength: 256,
      description: 'Whose; or give key. A subject pauses its own.',
    },
    key: {
      type: 'string',
      minLength: 1,
      maxLength: 256,
      description: 'An API key of whom it is; of a limit by key, that key.',
    },
    limit: { type: 'string', minLength: 1, maxLength: 64, description: 'Name of a limit with onExceed: delay.' },
    for: {
      ...{ type: 'string', maxLength: 20, pattern: '^0*[1-9][0-9]*(ms|s|m|h|d)$' },
      description: 'How long it refuses from now on, 31d at most: 30s. A longer pause that stands already stays.',
    },
  },
} as const

const ajv = new Ajv({ allErrors: true })
const isPauseBody = ajv.compile<PauseBody>(pauseSchema)

/** The longest that somebody else's API asks its callers to wait; longer is a decision for whoever has a token. */
const ownPauseMsMax = 3_600_000

/** While Redis is away. */
const unavailableRetrySeconds = 1

const unavailable: Problem = {
  ...{ type: problemType('limits-unavailable'), title: 'Limits unavailable', status: 503 },
  detail:
    'Redis did not answer, or refused, of which the log has the reason: the limit may be paused or not. Ask again, which is safe.',
}

/** `POST /v1/pause`: for whoever was told by somebody else (a server that answers 429, say) that it is to wait. */
export function addPauseRoute(
  app: FastifyInstance,
  ports: Pick<Ports, 'pauses' | 'clock'>,
  checkAsker: ReturnType<typeof createAskerCheck>,
): void {
  const options = { schema: { body: pauseSchema }, onRequest: checkAsker, validatorCompiler: asItComes }
  app.post('/v1/pause', options, async (request, reply) => {
    const { view, asker } = askedBy(request)
    const { body } = request
    if (!isPauseBody(body)) return sendProblem(reply, badCheck(ajv.errorsText(isPauseBody.errors, { dataVar: 'body' })))
    const ms = parseDurationMs(body.for)
    if (ms === undefined || ms > pauseMsMax)
      return sendProblem(reply, badCheck('for is a duration of at most 31d, such as 30s.'))
    const who = whoIsAsked(view, asker, body, ports.clock.nowMs())
    if (who.kind === 'problem') return sendProblem(reply, who.problem)
    if (who.kind === 'unauthenticated') return sendProblem(reply, badCheck('key is no valid key.'))
    const { subject, keyId } = who
    if (asker.kind === 'subject' && ms > ownPauseMsMax)
      return sendProblem(reply, badCheck('A subject pauses its own limits for at most 1h.'))
    const limit = findLimit(view, subject, body.limit)
    if (!('wrong' in limit) && keyId === '' && limit.by.some(({ kind }) => kind === 'key'))
      return sendProblem(reply, badCheck(`The limit ${limit.name} counts by key: give key in the place of subject.`))
    if ('wrong' in limit) return sendProblem(reply, badCheck(limit.wrong))
    const scope = { subject: subject.id, keyId, ip: '', route: '', method: '' }
    const leftMs = await ports.pauses?.pause(limit, scope, ms)
    request.log.info({ subject: subject.id, limit: limit.name, ms, paused: leftMs !== undefined }, 'pause')
    if (leftMs === undefined) return sendProblem(reply.header('retry-after', unavailableRetrySeconds), unavailable)
    return reply.header('cache-control', 'no-store').send({ limit: limit.name, retry_after_ms: leftMs })
  })
}

/** The subject's version of a limit that listens to pauses and counts by nothing that is not said here. */
function findLimit({ policy }: PolicyView, subject: Subject, name: string): Limit | { readonly wrong: string } {
  const limit = subject.ownLimits.get(name) ?? policy.limits.get(name)
  if (limit === undefined) {
    return { wrong: `The policy has no limit ${JSON.stringify(name)}${didYouMean(name, policy.limits.keys())}.` }
  }
  if (limit.onExceed.kind !== 'delay')
    return { wrong: `The limit ${name} has no \`onExceed: delay\`, and cannot be paused.` }
  const isSaid = limit.by.every(({ kind }) => kind === 'subject' || kind === 'key')
  if (!isSaid) return { wrong: `The limit ${name} counts by more than subject and key, and cannot be paused for one.` }
  if (explainLimits(policy, subject, undefined).every((one) => one.limit.name !== name)) {
    return { wrong: `The limit ${name} does not apply to ${subject.id}.` }
  }
  return limit
}
