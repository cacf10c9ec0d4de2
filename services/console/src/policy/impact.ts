import { hash } from 'node:crypto'
import { getImpact, getLimitImpact, impactSubjects } from '@weir/api/policy.ts'
import { widened } from '@weir/api/query/fill.ts'
import { readNumber, readSpan } from '@weir/api/query/read-parameters.ts'
import { impactMsMax, impactStepMs } from '@weir/explain/impact/impact-queries.ts'
import { PolicyEdit } from '@weir/explain/impact/policy-edit.ts'
import type { ImpactQuestion } from '@weir/explain/impact/replay-impact.ts'
import { type Entity, type EntityChange, putEntity } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { planFile } from '@weir/policy-changes/apply-file.ts'
import { type ChangePlan, inSlices, type PolicyChanger, reject } from '@weir/policy-changes/change-policy.ts'
import { changeRejected } from '@weir/policy-changes/change-problems.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { missingChangeScope, missingScope } from '../http/authorize.ts'
import { answerProblem, tooManyQuestions, usageUnavailable } from '../http/problems.ts'
import { serveQuestion } from '../http/question-failure.ts'
import { Semaphore, type SemaphoreBounds } from '../http/semaphore.ts'
import type { Sources } from '../sources.ts'
import { iso, shownCompleteness, shownGaps } from '../usage/completeness.ts'
import { noEntity } from './entities.ts'

const dayMs = 86_400_000
const spanMsMax = 7 * dayMs
/** Each may keep a core busy for seconds. */
const atOnce: SemaphoreBounds = { all: 2, perCredential: 2 }

const tooMany = 'Two impact replays are already running, which is the maximum. Try again after Retry-After.'
const unanswered = {
  what: 'the impact of an edit could not be computed',
  problem: usageUnavailable('ClickHouse did not respond. Nothing was changed; try again later.'),
  msMax: impactMsMax,
}

/** The edit that these changes are, of the policy in force. Changes nothing. */
async function planEdit(
  request: FastifyRequest,
  state: PolicyState,
  changes: readonly EntityChange[],
): Promise<ChangePlan<PolicyEdit>> {
  const missing = missingChangeScope(request, state, changes)
  if (missing !== undefined) return reject(missing)
  const edited = await inSlices(state.previewSteps(changes))
  if (edited.kind === 'problems') return reject(changeRejected(edited.problems))
  const { policy } = state
  const before = { policy, subjectOf: (id: string) => policy.subjects.get(id) }
  const subjects = changes.filter(({ kind }) => kind === 'subject').map(({ name }) => name)
  return { kind: 'nothing', answer: new PolicyEdit(before, edited, subjects) }
}

/** The changes that a file is. */
const changesOf = async (state: PolicyState, entities: readonly Entity[]) =>
  (await inSlices(planFile(state, entities, hash('sha256', '', 'hex')))).changes

/** What is asked about, in whole quarter hours, or what is wrong with it. */
interface Asked {
  readonly subject?: string | readonly string[] | undefined
  readonly top?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

function questionOf({ subject, top, from, to }: Asked, nowMs: number): ImpactQuestion | Problem {
  const wrong: string[] = []
  const asked = readSpan({ from, to }, { nowMs, spanMs: spanMsMax }, wrong)
  const { fromMs, toMs } = widened(asked, impactStepMs)
  if (toMs - fromMs > spanMsMax + impactStepMs) wrong.push('from and to may be 7 days apart, not more')
  if (subject !== undefined && top !== undefined) wrong.push('subject and top exclude each other')
  const count = readNumber(
    { name: 'top', value: top ?? String(impactSubjects.asked), min: 1, max: impactSubjects.most },
    wrong,
  )
  const subjects = subject === undefined ? undefined : [subject].flat()
  if ((subjects?.length ?? 0) > impactSubjects.most) wrong.push(`subjects are ${impactSubjects.most} at most`)
  return wrong.length > 0 ? badRequest(wrong.join('; ')) : { fromMs, toMs, subjects, top: count }
}

/** What an edit would have done, two at once; both routes share it. */
export function impactAnswers(sources: Sources, changer: PolicyChanger) {
  const semaphore = new Semaphore(atOnce)
  type Plan = (state: PolicyState) => Promise<ChangePlan<PolicyEdit>>
  return async (request: FastifyRequest, reply: FastifyReply, asked: Asked, plan: Plan) => {
    const missing = missingScope(request, 'usage')
    if (missing !== undefined) return answerProblem(reply, missing)
    const question = questionOf(asked, sources.clock.nowMs())
    if ('status' in question) return answerProblem(reply, question)
    const permit = semaphore.take(request.by)
    if ('refusal' in permit) return answerProblem(reply, tooManyQuestions(tooMany))
    try {
      const planned = await changer.change<PolicyEdit>(request.by, plan)
      if (planned.kind === 'problem') return answerProblem(reply, planned.problem)
      const [completeness, impact, found] = await Promise.all([
        sources.usage.askCompleteness('decisions'),
        sources.decisions.askImpact(planned.answer, question),
        sources.usage.readGaps('decisions', question),
      ])
      return {
        from: iso(question.fromMs),
        to: iso(question.toMs),
        ...shownCompleteness(completeness, request.reach),
        gaps: shownGaps(found, request.reach),
        ...impact,
      }
    } finally {
      permit.leave()
    }
  }
}
type AnswerImpact = ReturnType<typeof impactAnswers>

/** `POST /v1/policy/impact`: which requests of the last days an edited policy would have refused, as a file. */
export function registerImpact(
  app: FastifyInstance,
  answerImpact: AnswerImpact,
  file: { readonly bodyLimit: number; readonly readFile: (body: unknown) => Promise<readonly Entity[] | Problem> },
): void {
  const answer = (request: FastifyRequest, reply: FastifyReply) =>
    answerImpact(request, reply, request.query as Asked, async (state) => {
      const entities = await file.readFile(request.body)
      if ('status' in entities) return reject(entities)
      return planEdit(request, state, await changesOf(state, entities))
    })
  serveQuestion(app, getImpact, unanswered, answer, { bodyLimit: file.bodyLimit })
}

/** `POST /v1/limits/{name}/impact`: the same of one limit with other settings, for the subjects that are named. */
export function registerLimitImpact(app: FastifyInstance, answerImpact: AnswerImpact): void {
  serveQuestion(app, getLimitImpact, unanswered, async (request, reply) => {
    const { name } = request.params
    const { settings: body, subjects: subject, from, to } = request.body
    return answerImpact(request, reply, { subject, from, to }, async (state) => {
      const before = state.get('limit', name)
      if (before === undefined) return reject(noEntity(state, 'limit', name))
      return planEdit(request, state, [putEntity({ ...before, body })])
    })
  })
}
