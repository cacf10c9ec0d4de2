import {
  type LeasesResults,
  leaseRefusals,
  leaseSettlement,
  leasesBody,
  leasesRound,
  leaseWish,
} from '@weir/api/leases.ts'
import type { Of } from '@weir/api/schema.ts'
import { rateLimitTemplates, shownStates } from '@weir/core/limits/rate-limit-headers.ts'
import type { Settling } from '@weir/decide/correct/settle.ts'
import type { DecisionService } from '@weir/decide/decision-service.ts'
import type { Lease } from '@weir/decide/lease/leasing.ts'
import type { DecisionRequest } from '@weir/decide/types.ts'
import { ancestorsOf } from '@weir/policy/ancestors.ts'
import { badRequest, type Problem, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { isProblem } from '../http/decision-reply.ts'
import { sendJson } from '../http/send-json.ts'
import { startedAtOf } from '../http/timed-response.ts'
import type { Ports } from '../ports.ts'
import { askedIn, type CheckParts, forbidden } from './check/answer-check.ts'
import { authorizedCheck, type CallerAuthorizer } from './check/authorize-caller.ts'
import { bodyReader, checkRoute } from './check/check-body.ts'
import { leasesPath } from './check/check-paths.ts'
import { decisionText } from './check.ts'
import { settlementOf, settleProblem } from './settle.ts'

const readRound = bodyReader(leasesRound)
/** One by one: a malformed item does not spoil the others. */
const [readSettlement, readRefusals] = [bodyReader(leaseSettlement), bodyReader(leaseRefusals)]
const readWish = bodyReader(leaseWish)

/** As a batch of checks may be. */
const bodyBytesMax = 262_144

const tokensOnly = forbidden('Units are given ahead to tokens with the `check` scope only.')
const noSuchKey = badRequest('The key is wrong or expired: its requests are checked one by one.')
const noSuchLimit = (name: string) => badRequest(`No limit ${JSON.stringify(name)} applies to such a request.`)

type Settled = LeasesResults['settled'][number]
type Refused = LeasesResults['refused'][number]
type Wish = Of<typeof leaseWish>

/** `POST /v1/leases`: what applications decided with units that they took ahead, and the units for what comes next. */
export function addLeaseRoute(
  app: FastifyInstance,
  ports: Ports,
  { decisionService, settling }: { readonly decisionService: DecisionService; readonly settling: Settling },
  authorizeCaller: CallerAuthorizer,
): void {
  const { leasing } = decisionService

  async function settle(parts: CheckParts, item: unknown): Promise<Settled> {
    const read = readSettlement(item)
    if ('wrong' in read) return { problem: badRequest(read.wrong) }
    const body = read.value
    const settlement = settlementOf(parts.principal, parts.view, body)
    if (isProblem(settlement)) return { problem: settlement }
    const answer = await settling.settle({ ...settlement, cost: body.cost })
    if (answer.kind === 'settled') return { id: body.id, adjustment: answer.adjustment }
    return { problem: settleProblem(body.id, answer).found }
  }

  async function refuse(parts: CheckParts, item: unknown): Promise<Refused> {
    const read = readRefusals(item)
    if ('wrong' in read) return { problem: badRequest(read.wrong) }
    const { denied_by, count, ...question } = read.value
    const ask = askOf(parts, question)
    if (isProblem(ask)) return { problem: ask }
    const isRecorded = await leasing.refuse(ask, denied_by, count)
    return isRecorded === undefined ? { problem: noSuchLimit(denied_by) } : { recorded: isRecorded }
  }

  /** Each as JSON. Those of one subject one after the other: each is a part of what the one before left. */
  async function leaseAll(parts: CheckParts, items: readonly unknown[]): Promise<readonly string[]> {
    const lastOf = new Map<string, Promise<unknown>>()
    return await Promise.all(
      items.map((item) => {
        const read = readWish(item)
        if ('wrong' in read) return JSON.stringify({ problem: badRequest(read.wrong) })
        const { want, ...question } = read.value
        const ask = askOf(parts, question)
        if (isProblem(ask)) return JSON.stringify({ problem: ask })
        const root = ask.subject.parent === undefined ? ask.subject.id : (ancestorsOf(ask.subject).at(-1)?.id ?? '')
        const answer = Promise.resolve(lastOf.get(root)).then(() => lease(ask, want))
        lastOf.set(root, answer)
        return answer
      }),
    )
  }

  async function lease(ask: DecisionRequest, want: number): Promise<string> {
    const answer = await leasing.lease(ask, want)
    if (answer.kind === 'leased')
      return JSON.stringify({ ...leaseOf(answer, ports.dialect ?? 'draft10'), subject: ask.subject.id })
    const { why, retryMs, recorded } = answer
    const retry = retryMs === undefined ? '' : `,"retry_ms":${retryMs}`
    const result = recorded === undefined ? '' : `,"result":${decisionText(recorded, true)}`
    return `{"count":0,"why":"${why}"${retry}${result}}`
  }

  const options = { ...checkRoute(leasesBody, authorizeCaller), bodyLimit: bodyBytesMax }
  app.post(leasesPath, options, async (request, reply) => {
    const { view, principal } = authorizedCheck(request)
    if (principal.kind === 'subject') return sendProblem(reply, tokensOnly)
    const read = readRound(request.body)
    if ('wrong' in read) return sendProblem(reply, badRequest(read.wrong))
    const asked = { view, principal, startedAt: startedAtOf(reply.raw), nowMs: ports.clock.nowMs() }
    const parts: CheckParts = { ...asked, decisionService, entryPoint: 'batch', client: undefined, trace: undefined }
    const { settle: settlements = [], refused: refusals = [], lease: wishes = [] } = read.value
    // Units come back before others are given.
    const settled = await Promise.all(settlements.map((one) => settle(parts, one)))
    const refused = await Promise.all(refusals.map((one) => refuse(parts, one)))
    const leases = await leaseAll(parts, wishes)
    const text = `{"settled":${JSON.stringify(settled)},"refused":${JSON.stringify(refused)},"leases":[${leases.join()}]}`
    return sendJson(reply, text, [])
  })
}

function askOf(parts: CheckParts, question: Omit<Wish, 'want'>): DecisionRequest | Problem {
  const ask = askedIn(parts, question)
  return isProblem(ask) || !('retryAfterMs' in ask) ? ask : noSuchKey
}

function leaseOf({ id, count, cost, endsMs, lifeMs, recorded }: Lease, dialect: NonNullable<Ports['dialect']>) {
  const { decision, limits = [] } = recorded
  const states = shownStates(decision, limits, true).map(({ resetMs, at: _, ...state }) => {
    return { ...state, reset_ms: resetMs }
  })
  const headers = Object.fromEntries([['weir-decision', id], ...rateLimitTemplates(dialect, decision, limits)])
  return { id, count, cost, ends_ms: Math.floor(endsMs), life_ms: lifeMs, limits: states, headers }
}
