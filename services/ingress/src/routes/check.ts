import { batchBody, checkBody } from '@weir/api/check.ts'
import { jsonText } from '@weir/contracts/json-text.ts'
import type { ByHand } from '@weir/core/limits/decision.ts'
import { shownStates } from '@weir/core/limits/rate-limit-headers.ts'
import type { DecisionService } from '@weir/decide/decision-service.ts'
import { onExceedOf } from '@weir/decide/limits/exceeded.ts'
import type { RecordedDecision } from '@weir/decide/types.ts'
import { badRequest, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  collector,
  denialProblem,
  type HeaderTarget,
  isProblem,
  type ReplySettings,
  setDecisionHeaders,
} from '../http/decision-reply.ts'
import { sendJson } from '../http/send-json.ts'
import { startedAtOf } from '../http/timed-response.ts'
import type { Ports } from '../ports.ts'
import { answerCheck, type Checked } from './check/answer-check.ts'
import { authorizedCheck, type CallerAuthorizer } from './check/authorize-caller.ts'
import { checkRoute, readBatch, readCheck } from './check/check-body.ts'
import { batchPath, checkPath } from './check/check-paths.ts'

/** The body of a request as the proxy reads one, up to 64 kB, and 16 kB for everything else. */
const checkBodyBytesMax = 81_920

/** 100 checks of 2.6 kB, ten times a usual one. Reading them blocks the event loop for some 2 ms. */
const batchBodyBytesMax = 262_144

const noWaiting = badRequest('A check in a batch cannot wait: omit wait, or send the check on its own.')

/**
 * `POST /v1/check`, a decision without a proxied request, and `POST /v1/check/batch`, many of them, each decided for
 * itself and in order, as if one had come after the other.
 */
export function addCheckRoutes(
  app: FastifyInstance,
  ports: Ports,
  decisionService: DecisionService,
  authorizeCaller: CallerAuthorizer,
): void {
  const send = (reply: FastifyReply, checked: Checked) => {
    if (isProblem(checked)) return sendProblem(reply, checked)
    if (isUnrecorded(checked)) {
      setDecisionHeaders(reply, checked, ports)
      return sendProblem(reply, denialProblem(reply, checked))
    }
    const headers: string[] = []
    setDecisionHeaders(collector(headers), checked, ports)
    return sendJson(reply, decisionText(checked, isToken(reply.request)), headers)
  }

  const partsOf = (request: FastifyRequest, { raw }: FastifyReply, entryPoint: 'check' | 'batch') => {
    const { view, principal } = authorizedCheck(request)
    const startedAt = startedAtOf(raw)
    const trace = ports.traces
      ?.begin(request.raw, view.policy, principal.kind === 'token')
      ?.startHttp('POST', entryPoint === 'check' ? checkPath : batchPath, startedAt, raw)
    const client = entryPoint === 'check' ? raw : undefined
    return { decisionService, entryPoint, startedAt, view, principal, nowMs: ports.clock.nowMs(), client, trace }
  }

  // It is not async, because Fastify would wait for its promise too: a microsecond of every request.
  const single = { ...checkRoute(checkBody, authorizeCaller), bodyLimit: checkBodyBytesMax }
  app.post(checkPath, single, (request, reply) => {
    const read = readCheck(request.body)
    if ('wrong' in read) {
      sendProblem(reply, badRequest(read.wrong))
      return
    }
    const checked = answerCheck(partsOf(request, reply, 'check'), read.value)
    if (checked instanceof Promise) checked.then((found) => send(reply, found)).catch((error) => reply.send(error))
    else send(reply, checked)
  })

  const options = { ...checkRoute(batchBody, authorizeCaller), bodyLimit: batchBodyBytesMax }
  app.post(batchPath, options, async (request, reply) => {
    const batch = readBatch(request.body)
    if ('wrong' in batch) return sendProblem(reply, badRequest(batch.wrong))
    const parts = partsOf(request, reply, 'batch')
    // All are asked in one tick of the event loop, so that they share calls of the script. Each is a promise from its
    // beginning: one that throws must not leave others behind that nothing waits for.
    const checked = batch.value.checks.map(async (body) => {
      const read = readCheck(body)
      if ('wrong' in read) return badRequest(read.wrong)
      return read.value.wait === undefined ? answerCheck(parts, read.value) : noWaiting
    })
    const settings = batch.value.headers === true ? ports : undefined
    const showsAbove = isToken(request)
    const results = (await Promise.all(checked)).map((one) => resultText(one, settings, showsAbove))
    return sendJson(reply, `{"results":[${results.join()}]}`, [])
  })
}

/** Who looks after all subjects sees the limits of those above. */
const isToken = (request: FastifyRequest) => authorizedCheck(request).principal.kind === 'token'

/** A decision without a record is answered with 503: any other answer would mean that it is counted. */
const isUnrecorded = ({ decision }: RecordedDecision): boolean => decision.reason === 'journal_full'

/**
 * The result of one check of a batch, as JSON; with the headers of a check of its own if there are settings for them.
 */
function resultText(checked: Checked, settings: ReplySettings | undefined, showsAbove: boolean): string {
  if (isProblem(checked)) return JSON.stringify({ problem: checked })
  const headers = new HeaderText()
  if (settings !== undefined) setDecisionHeaders(headers, checked, settings)
  const text = isUnrecorded(checked)
    ? JSON.stringify({ problem: denialProblem(headers, checked) })
    : decisionText(checked, showsAbove)
  return settings === undefined ? text : `${text.slice(0, -1)},"headers":{${headers.text}}}`
}

/** Headers as the members of a JSON object. */
class HeaderText implements HeaderTarget {
  text = ''

  header(name: string, value: string | number): void {
    this.text += `${this.text === '' ? '' : ','}"${name}":${jsonText(String(value))}`
  }
}

/**
 * What the check API answers as JSON, for both outcomes with status 200. Shadow limits are left out, as in the headers,
 * and unless `showsAbove`, those of ancestors. By a template, in a third of the time of JSON.stringify.
 */
export function decisionText(recorded: RecordedDecision, showsAbove = false): string {
  const { id, decision, limits = [] } = recorded
  const { allowed, reason, deniedBy, retryAfterMs } = decision
  let states = ''
  for (const { name, size, used, remaining, resetMs } of shownStates(decision, limits, showsAbove)) {
    const at = showsAbove ? atText(recorded, name) : ''
    states += `${states === '' ? '' : ','}{"name":${jsonText(name)},"size":${size},"used":${used},"remaining":${remaining},"reset_ms":${resetMs}${at}}`
  }
  const beyond = deniedBy === '' ? suspendedText(decision.byHand) : beyondText({ decision, limits })
  return `{"id":${id === undefined ? 'null' : `"${id}"`},"allowed":${allowed},"reason":"${reason}","denied_by":${jsonText(deniedBy)},"retry_after_ms":${retryAfterMs}${beyond},"limits":[${states}]}`
}

/** At which ancestor a limit counts. */
function atText({ above, limits }: RecordedDecision, limit: string): string {
  const { level = 0 } = (above && limits?.find(({ name }) => name === limit)) ?? {}
  const at = above?.[level - 1]
  return at === undefined ? '' : `,"at":${jsonText(at.id)}`
}

const suspendedText = (byHand: ByHand | undefined) =>
  byHand?.kind === 'suspended' ? `,"suspended":${jsonText(byHand.reason)}` : ''

/** What the policy wants done beyond the limit, for the caller to do. */
function beyondText({ decision, limits }: Pick<RecordedDecision, 'decision' | 'limits'>): string {
  const onExceed = onExceedOf(decision, limits)
  if (onExceed === undefined || onExceed.kind === 'deny') return ''
  const page = onExceed.kind === 'challenge' ? `,"challenge":${jsonText(onExceed.url)}` : ''
  return `,"on_exceed":"${onExceed.kind}"${page}`
}
