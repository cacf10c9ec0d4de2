import { hash } from 'node:crypto'
import type { Impact, ImpactOfLimit } from '@weir/clickhouse/impact/impact.ts'
import { impactMsMax } from '@weir/clickhouse/impact/impact-queries.ts'
import type { EstimatedLimit } from '@weir/core/impact/estimate-subject.ts'
import { readSpan } from '@weir/core/usage/read-parameters.ts'
import type { Entity } from '@weir/policy/entities.ts'
import { PolicyEdit } from '@weir/policy/impact/policy-edit.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { planFile } from '../apply-file.ts'
import { type ChangePlan, inSlices, type PolicyChanger, reject } from '../change-policy.ts'
import { missingChangeScope, missingScope } from '../http/authorize.ts'
import { PlaceCounter, type Places } from '../http/places.ts'
import { answerProblem, changeRejected, tooManyQuestions, usageUnavailable } from '../http/problems.ts'
import { questionFailure } from '../http/question-failure.ts'
import { answer, closed, object, operation, problems, text } from '../http/schemas.ts'
import { completeness, gaps, shownGaps, shownSilent, time } from '../http/usage-schemas.ts'
import type { Ports } from '../ports.ts'

const dayMs = 86_400_000
const minuteMs = 60_000
const spanMsMax = 7 * dayMs
/** Each may keep a core busy for seconds. */
const atOnce: Places = { all: 2, perCredential: 2 }

const tooMany = 'The impact of as many edits as may be is being told already. Ask again after Retry-After.'

const refused = {
  before: { type: 'integer', description: 'refused, as recorded' },
  at_least: { type: ['integer', 'null'], description: 'refused by the edited policy, at least; null: not known' },
  at_most: { type: ['integer', 'null'], description: 'at most; where both are equal, it is that number' },
}
const limit = object({
  limit: text('its name'),
  edit: {
    type: 'string',
    enum: ['added', 'removed', 'changed', 'applied', 'unchanged'],
    description: 'applied: to other requests, or otherwise to some; unchanged: it refuses otherwise because of others',
  },
  ...refused,
  not_estimated: { type: ['string', 'null'], enum: ['shared', 'delay', null], description: 'why it is not known' },
  subjects: {
    type: 'array',
    description: 'whose refusals may change, the most refusals first; at most 100',
    items: object({ subject: text('its id'), ...refused }),
  },
  more_subjects: { type: 'integer', description: 'those beyond' },
})
const impactAnswer = object({
  from: text('RFC 3339'),
  to: text('RFC 3339'),
  ...{ ...completeness, gaps },
  method: { type: 'string', enum: ['minutes', 'replay'], description: 'docs/policy.md says what each knows' },
  estimate: { type: 'boolean', description: 'false: this is what the edited policy decides for these requests' },
  assumptions: { type: 'array', items: { type: 'string' }, description: 'what the numbers rest on' },
  requests: { type: 'integer', description: 'of the subjects that the edit touches' },
  subjects: { type: 'integer' },
  refused: object(refused),
  to_refused: { type: ['integer', 'null'], description: 'of a replay: admitted then, refused now' },
  to_admitted: { type: ['integer', 'null'], description: 'of a replay: refused then, admitted now' },
  limits: { type: 'array', items: limit },
})

const shownCounts = ({ before, atLeast, atMost }: EstimatedLimit, isKnown = true) => ({
  ...{ before, at_least: isKnown ? atLeast : null, at_most: isKnown ? atMost : null },
})

const shownLimit = ({ limit, edit, notEstimated, subjects, moreSubjects, ...counts }: ImpactOfLimit) => ({
  ...{ limit, edit, ...shownCounts(counts, notEstimated === undefined), not_estimated: notEstimated ?? null },
  subjects: subjects.map(({ subject, ...own }) => ({ subject, ...shownCounts(own, notEstimated === undefined) })),
  more_subjects: moreSubjects,
})

const shownImpact = ({ method, isExact, assumptions, requests, subjects, total, turned, limits }: Impact) => ({
  ...{ method, estimate: !isExact, assumptions, requests, subjects, refused: shownCounts(total) },
  ...{ to_refused: turned?.toRefused ?? null, to_admitted: turned?.toAdmitted ?? null },
  limits: limits.map(shownLimit),
})

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

interface ImpactQuery {
  readonly subject?: string
  readonly from?: string
  readonly to?: string
}

/** The whole minutes that are asked about, or what is wrong with them. */
function spanOf(
  { from, to }: ImpactQuery,
  nowMs: number,
): { readonly fromMs: number; readonly toMs: number } | Problem {
  const wrong: string[] = []
  const asked = readSpan({ from, to }, { nowMs, spanMs: spanMsMax }, wrong)
  const fromMs = Math.floor(asked.fromMs / minuteMs) * minuteMs
  const toMs = Math.ceil(asked.toMs / minuteMs) * minuteMs
  if (toMs - fromMs > spanMsMax + minuteMs) wrong.push('from and to may be 7 days apart, not more')
  return wrong.length > 0 ? badRequest(wrong.join('; ')) : { fromMs, toMs }
}

const query = {
  subject: text('only this one: its requests are decided again, one by one'),
  from: text('as of usage; 7 days before `to` if absent, and no more'),
  to: text('the same; now if absent'),
}

/** `POST /v1/policy/impact`: which requests of the last days an edited policy would have refused. */
export function registerImpact(
  app: FastifyInstance,
  ports: Ports,
  changer: PolicyChanger,
  file: {
    readonly bodyLimit: number
    readonly fileBody: { readonly consumes: string[]; readonly described: { readonly body: object } }
    readonly readFile: (body: unknown) => Promise<readonly Entity[] | Problem>
  },
): void {
  const places = new PlaceCounter(atOnce)
  app.post<{ Querystring: ImpactQuery }>(
    '/v1/policy/impact',
    {
      bodyLimit: file.bodyLimit,
      ...operation('write', 'policy', 'Who would have been refused by an edited policy; changes nothing', {
        ...file.fileBody,
        query,
        described: {
          ...file.fileBody.described,
          querystring: closed({ ...query, from: time(query.from.description), to: time(query.to.description) }),
        },
        response: { 200: answer('The impact', impactAnswer), ...problems(409, 422, 429, 503, 504) },
      }),
    },
    async (request, reply) => {
      const missing = missingScope(request, 'usage')
      if (missing !== undefined) return answerProblem(reply, missing)
      const span = spanOf(request.query, ports.clock.nowMs())
      if ('status' in span) return answerProblem(reply, span)
      const place = places.take(request.by)
      if ('refusal' in place) return answerProblem(reply, tooManyQuestions(tooMany))
      try {
        const entities = await file.readFile(request.body)
        if ('status' in entities) return answerProblem(reply, entities)
        const planned = await changer.change<PolicyEdit>(request.by, (state) => planEdit(request, state, entities))
        if (planned.kind === 'problem') return answerProblem(reply, planned.problem)
        const { completeThroughMs, silent } = await ports.askCompleteness('decisions')
        const { subject } = request.query
        const [impact, found] = await Promise.all([
          ports.askImpact(planned.answer, { ...span, subject }),
          ports.readGaps('decisions', span),
        ])
        return {
          ...{ from: new Date(span.fromMs).toISOString(), to: new Date(span.toMs).toISOString() },
          complete_through: completeThroughMs === undefined ? null : new Date(completeThroughMs).toISOString(),
          silent: shownSilent(silent, request.reach),
          gaps: shownGaps(found, request.reach),
          ...shownImpact(impact),
        }
      } catch (error) {
        request.log.error({ err: error }, 'the impact of an edit could not be told')
        const unavailable = usageUnavailable('ClickHouse did not answer. Nothing was changed; ask again later.')
        return answerProblem(reply, questionFailure(error, { msMax: impactMsMax, unavailable }))
      } finally {
        place.leave()
      }
    },
  )
}
