import { type Problem, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyReply } from 'fastify'
import { degradedBy, onExceedOf } from '../../decide/limits/exceeded.ts'
import type { RecordedDecision } from '../../decide/types.ts'
import type { Caller } from '../../http/identity/caller.ts'
import type { GatewayOptions } from './gateway-options.ts'

/**
 * Allowed: 200, because Envoy takes 204 for a refusal, with what a gateway may tell the upstream of its caller. Each of
 * those headers is always there, even empty: where one is not, some gateways pass on the client's own. `x-weir-credential`
 * names the header that carried the credential, which is between the client and Weir.
 */
export function sendCaller(
  reply: FastifyReply,
  { subject, keyId, carriedIn }: Extract<Caller, { kind: 'known' }>,
  { decision }: RecordedDecision,
): FastifyReply {
  const name = carriedIn?.kind === 'header' ? carriedIn.name : ''
  // A gateway that names subjects by one of these gives it to its upstream as we say it.
  const credential = name.startsWith('x-weir-') ? '' : name
  // Envoy's own word for what must not go on to the upstream; to other gateways it is nothing.
  if (credential !== '') reply.header('x-envoy-auth-headers-to-remove', credential)
  return reply
    .code(200)
    .headers({ 'x-weir-subject': subject.id, 'x-weir-plan': subject.plan.name, 'x-weir-key-id': keyId })
    .headers({ 'x-weir-credential': credential, 'x-weir-degraded': degradedBy(decision), 'cache-control': 'no-store' })
    .send()
}

/**
 * Refused, as the gateway can pass it on. One that asked for `deny_status` hands neither the status nor the body to its
 * client: it finds both in headers.
 */
export function sendRefusal(reply: FastifyReply, { denyStatus }: GatewayOptions, problem: Problem): FastifyReply {
  if (denyStatus === undefined) return sendProblem(reply, problem)
  reply.header('x-limit-status', problem.status).header('x-weir-problem', asciiJson(problem))
  const isTranslated = problem.status < 500 && problem.status !== 401
  return sendProblem(reply, isTranslated ? { ...problem, status: denyStatus } : problem)
}

/** Of a limit that drops: we answer a question, and the gateway alone can leave its client without an answer. */
export function setOnExceed(reply: FastifyReply, { decision, limits }: RecordedDecision): void {
  if (onExceedOf(decision, limits)?.kind === 'drop') reply.header('weir-on-exceed', 'drop')
}

/** For a header: everything beyond ASCII, which a `detail` may quote, is escaped. */
const asciiJson = (value: unknown) =>
  JSON.stringify(value).replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
