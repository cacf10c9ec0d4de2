import { hash } from 'node:crypto'
import type { QueryOf } from '@weir/api/operation.ts'
import { getImpact, impactSubjects } from '@weir/api/policy.ts'
import { widened } from '@weir/api/query/fill.ts'
import { readNumber, readSpan } from '@weir/api/query/read-parameters.ts'
import { impactMsMax, impactStepMs } from '@weir/explain/impact/impact-queries.ts'
import { PolicyEdit } from '@weir/explain/impact/policy-edit.ts'
import type { ImpactQuestion } from '@weir/explain/impact/replay-impact.ts'
import type { Entity } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { planFile } from '@weir/policy-changes/apply-file.ts'
import { type ChangePlan, inSlices, type PolicyChanger, reject } from '@weir/policy-changes/change-policy.ts'
import { changeRejected } from '@weir/policy-changes/change-problems.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { missingChangeScope, missingScope } from '../http/authorize.ts'
import { answerProblem, tooManyQuestions, usageUnavailable } from '../http/problems.ts'
import { serveQuestion } from '../http/question-failure.ts'
import { Semaphore, type SemaphoreBounds } from '../http/semaphore.ts'
import type { Sources } from '../sources.ts'
import { iso, shownCompleteness, shownGaps } from '../usage/completeness.ts'

const dayMs = 86_400_000
const spanMsMax = 7 * dayMs
/** Each may keep a core busy for seconds. */
const atOnce: SemaphoreBounds = { all: 2, perCredential: 2 }

const tooMany = 'Two impact answers are being computed, which is the limit. Ask again after Retry-After.'
const unanswered = {
  what: 'the impact of an edit could not be told',
  problem: usageUnavailable('ClickHouse did not answer. Nothing was changed; ask again later.'),
  msMax: impactMsMax,
}

/** The edit that a file is, of the policy in force. Changes nothing. */
async function planEdit(
  request: FastifyRequest,
  state: PolicyState,
  entities: readonly Entity[],
): Promise<ChangePlan<PolicyEdit>> {
  const { changes } = await inSlices(planFile(state, entities, hash('sha256', '', 'hex')))
  const missing = missingChangeScope(request, state, changes)
  if (missing !== undefined) return reject(missing)
  const edited = await inSlices(state.previewSteps(changes))
  if (edited.kind === 'problems') return reject(changeRejected(edited.problems))
  const { policy } = state
  const before = { policy, subjectOf: (id: string) => policy.subjects.get(id) }
  const subjects = changes.filter(({ kind }) => kind === 'subject').map(({ name }) => name)
  return { kind: 'nothing', answer: new PolicyEdit(before, edited, subjects) }
}

/** What is asked about, in whole quarter hours, or what is wrong with it. */
function questionOf({ subject, top, from, to }: QueryOf<typeof getImpact>, nowMs: number): ImpactQuestion | Problem {
  const wrong: string[] = []
  const asked = readSpan({ from, to }, { nowMs, spanMs: spanMsMax }, wrong)
  const { fromMs, toMs } = widened(asked, impactStepMs)
  if (toMs - fromMs > spanMsMax + impactStepMs) wrong.push('from and to may be 7 days apart, not more')
  if (subject !== undefined && top !== undefined) wrong.push('subject and top exclude each other')
  const count = readNumber(
    { name: 'top', value: top ?? String(impactSubjects.asked), min: 1, max: impactSubjects.most },
    wrong,
  )
  return wrong.length > 0 ? badRequest(wrong.join('; ')) : { fromMs, toMs, subject, top: count }
}

/** `POST /v1/policy/impact`: which requests of the last days an edited policy would have refused. */
export function registerImpact(
  app: FastifyInstance,
  sources: Sources,
  changer: PolicyChanger,
  file: { readonly bodyLimit: number; readonly readFile: (body: unknown) => Promise<readonly Entity[] | Problem> },
): void {
  const semaphore = new Semaphore(atOnce)
  serveQuestion(
    app,
    getImpact,
    unanswered,
    async (request, reply) => {
      const missing = missingScope(request, 'usage')
      if (missing !== undefined) return answerProblem(reply, missing)
      const question = questionOf(request.query, sources.clock.nowMs())
      if ('status' in question) return answerProblem(reply, question)
      const permit = semaphore.take(request.by)
      if ('refusal' in permit) return answerProblem(reply, tooManyQuestions(tooMany))
      try {
        const entities = await file.readFile(request.body)
        if ('status' in entities) return answerProblem(reply, entities)
        const planned = await changer.change<PolicyEdit>(request.by, (state) => planEdit(request, state, entities))
        if (planned.kind === 'problem') return answerProblem(reply, planned.problem)
        const completeness = await sources.usage.askCompleteness('decisions')
        const [impact, found] = await Promise.all([
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
    },
    { bodyLimit: file.bodyLimit },
  )
}
