import { degradedBy, onExceedOf } from '@weir/decide/limits/exceeded.ts'
import type { RecordedDecision } from '@weir/decide/types.ts'
import type { Caller } from '@weir/identity/caller.ts'
import { badRequest, type Problem, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyReply } from 'fastify'
import type { OwnBody } from '../../http/own-refusal.ts'

/** Options of a gateway, as query parameters of the address that it calls. */
export interface GatewayOptions {
  /** Answer every refusal of the 400 class but 401 with this status, for gateways that know only 401 and 403. */
  readonly denyStatus: 403 | undefined
  /** The same for the same request of the client, however often the gateway asks: it is charged once. */
  readonly requestId: string | undefined
}

/** The options of a gateway that sets none. */
export const noOptions: GatewayOptions = { denyStatus: undefined, requestId: undefined }

/** nginx's `$request_id` has 32 characters, a UUID 36. */
const requestIdPattern = /^[\w.:-]{8,128}$/

/**
 * Reads the options in `query` (without `?`), or what is wrong with them. Some gateways append the client's own query
 * when they call Weir, which must not be taken for theirs: the end of the original request is never an option.
 */
export function readGatewayOptions(query: string, originalUrl: string): GatewayOptions | Problem {
  if (query === '' || originalUrl.endsWith(`?${query}`)) return noOptions
  const found = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query)) {
    if (found.has(name)) return badRequest(`${name} is given twice.`)
    found.set(name, value)
  }
  const [denyStatus, requestId] = [found.get('deny_status'), found.get('request_id')]
  if (denyStatus !== undefined && denyStatus !== '403') return badRequest('deny_status can only be 403.')
  if (requestId !== undefined && !requestIdPattern.test(requestId)) {
    return badRequest('request_id must have 8 to 128 letters, digits, or any of . : _ -')
  }
  for (const name of found.keys()) {
    if (name !== 'deny_status' && name !== 'request_id') {
      return badRequest(`Unknown option ${JSON.stringify(name)}; the options are deny_status and request_id.`)
    }
  }
  return { denyStatus: denyStatus === undefined ? undefined : 403, requestId }
}

/**
 * Answers an allowed request: 200, because Envoy reads 204 as a refusal, with what a gateway may tell the upstream
 * about the caller. Each of those headers is always there, even empty: where one is absent, some gateways forward the
 * client's own. `x-weir-credential` names the header that carried the credential, which is between the client and Weir.
 */
export function sendCaller(
  reply: FastifyReply,
  { subject, keyId, carriedIn }: Extract<Caller, { kind: 'known' }>,
  { decision }: RecordedDecision,
): FastifyReply {
  const name = carriedIn?.kind === 'header' ? carriedIn.name : ''
  // A gateway that names subjects by one of these sends it to its upstream with Weir's value.
  const credential = name.startsWith('x-weir-') ? '' : name
  // Envoy removes this header before the upstream; other gateways ignore it.
  if (credential !== '') reply.header('x-envoy-auth-headers-to-remove', credential)
  return reply
    .code(200)
    .headers({ 'x-weir-subject': subject.id, 'x-weir-plan': subject.plan.name, 'x-weir-key-id': keyId })
    .headers({ 'x-weir-credential': credential, 'x-weir-degraded': degradedBy(decision), 'cache-control': 'no-store' })
    .send()
}

/**
 * Answers a refusal in the way that the gateway can forward. One that set `deny_status` hands neither status nor body
 * to its client: it finds both in headers, the problem also where the route has a body of its own.
 */
export function sendRefusal(
  reply: FastifyReply,
  { denyStatus }: GatewayOptions,
  problem: Problem,
  own?: OwnBody,
): FastifyReply {
  if (denyStatus === undefined) return sendBody(reply, problem, own)
  reply.header('x-limit-status', problem.status).header('x-weir-problem', asciiJson(problem))
  const isTranslated = problem.status < 500 && problem.status !== 401
  return sendBody(reply, isTranslated ? { ...problem, status: denyStatus } : problem, own)
}

const sendBody = (reply: FastifyReply, problem: Problem, own: OwnBody | undefined): FastifyReply =>
  own === undefined
    ? sendProblem(reply, problem)
    : reply.code(problem.status).headers({ 'content-type': own.type, 'cache-control': 'no-store' }).send(own.bytes)

/** Marks the denial by a limit that drops: only the gateway can leave its client without an answer. */
export function setOnExceed(reply: FastifyReply, { decision, limits }: RecordedDecision): void {
  if (onExceedOf(decision, limits)?.kind === 'drop') reply.header('weir-on-exceed', 'drop')
}

/** JSON for a header: everything beyond ASCII, which a `detail` may quote, is escaped. */
const asciiJson = (value: unknown) =>
  JSON.stringify(value).replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
