import { randomUUID } from 'node:crypto'
import { deleteEntity, type Entity, isJsonObject, type JsonObject, putEntity } from '@weir/policy/entities.ts'
import { durationPattern, parseDurationMs, parseTimeMs, timePattern } from '@weir/policy/policy-values.ts'
import { partSchema } from '@weir/policy/reader/part-schema.ts'
import { silenceLongestMs } from '@weir/policy/reader/read-silences.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem, changeRejected, policyUnread } from '../http/problems.ts'
import {
  answer,
  closed,
  deleted,
  object,
  operation,
  type PageQuery,
  page,
  pageOf,
  pageQuery,
  problems,
  text,
} from '../http/schemas.ts'
import { changing } from '../policy/answer-change.ts'
import { type ChangePlan, type PolicyChanger, reject } from '../policy/change-policy.ts'
import { noEntity } from '../policy/entities.ts'
import type { Ports } from '../ports.ts'

const tag = 'silences'
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
/** A caller's clock is behind by less: a silence that it begins now is not one that begins in the past. */
const clockSlackMs = minuteMs
/** Planned work is known so far ahead; what is further off is a mistake in the date. */
const aheadMaxMs = 90 * dayMs
/**
 * A silence is kept for this long after its end: alerting may read an alert of its time again for four days, and must
 * find it silenced then too.
 */
const keptMs = 5 * dayMs

interface NewSilence {
  readonly subjects?: readonly string[]
  readonly limits?: readonly string[]
  readonly types?: readonly string[]
  readonly from?: string
  readonly for: string
  readonly reason?: string
}

const timeOf = ({ body }: Entity, name: 'from' | 'until') => parseTimeMs(String(body[name])) ?? 0
/** No schema says how long a duration is, or what time it is. */
const wrong = (path: string, message: string) => changeRejected([{ path, message }])
const timeText = (ms: number) => new Date(ms).toISOString()

function shown(silence: Entity, nowMs: number) {
  const isBegun = nowMs >= timeOf(silence, 'from')
  const state = nowMs >= timeOf(silence, 'until') ? 'ended' : isBegun ? 'active' : 'pending'
  return { ...silence.body, name: silence.name, state }
}

/** Makes a silence, and deletes those that ended long ago. */
function planCreate(state: PolicyState, given: NewSilence, by: string, nowMs: number): ChangePlan<object> {
  const { from, for: length, ...what } = given
  const lengthMs = parseDurationMs(length)
  if (lengthMs === undefined || lengthMs < minuteMs || lengthMs > silenceLongestMs) {
    return reject(wrong('for', 'must be a duration from 1m to 30d, such as 2h'))
  }
  const askedMs = from === undefined ? nowMs : parseTimeMs(from)
  if (askedMs === undefined || askedMs < nowMs - clockSlackMs || askedMs > nowMs + aheadMaxMs) {
    return reject(wrong('from', 'must be a time from now on and within 90 days, such as 2027-01-31T00:00:00Z'))
  }
  // Alerts that were raised before are on their way: none of them is silenced.
  const fromMs = Math.max(askedMs, nowMs)
  const body = { ...what, from: timeText(fromMs), until: timeText(fromMs + lengthMs), by } as JsonObject
  const entity: Entity = { kind: 'silence', name: randomUUID(), origin: 'admin', position: undefined, body }
  const isOver = (one: Entity) => one.origin === 'admin' && timeOf(one, 'until') < nowMs - keptMs
  const over = [...state.list('silence')].filter(isOver)
  return {
    kind: 'change',
    changes: [putEntity(entity), ...over.map(({ name }) => deleteEntity('silence', name))],
    lines: [{ what: 'create', kind: 'silence', name: entity.name }],
    answer: shown(entity, nowMs),
  }
}

/** Ends a silence now; alerts that were raised within it stay silenced. One that has not begun is deleted. */
function planEnd(state: PolicyState, name: string, nowMs: number): ChangePlan<undefined> {
  const before = state.get('silence', name)
  if (before === undefined) return reject(noEntity(state, 'silence', name))
  if (nowMs >= timeOf(before, 'until')) return { kind: 'nothing', answer: undefined }
  const body = { ...before.body, until: timeText(nowMs) }
  const isBegun = nowMs > timeOf(before, 'from')
  return {
    kind: 'change',
    changes: [isBegun ? putEntity({ ...before, origin: 'admin', body }) : deleteEntity('silence', name)],
    lines: [{ what: 'revoke', kind: 'silence', name }],
    answer: undefined,
  }
}

const texts = (description: string) => ({ type: 'array', items: { type: 'string' }, description })
const choice = {
  subjects: texts('alerts about these; `_all` for those of watches over all together'),
  limits: texts('alerts about these limits'),
  types: texts('alerts of these types, such as `weir.quota.reached`'),
} as const
const reason = text('why, for the others who read the list')
const described = (body: JsonObject) => {
  const { properties, anyOf = [] } = partSchema('silences')
  const rules = isJsonObject(properties) ? properties : {}
  const known = Object.fromEntries(['subjects', 'limits', 'types', 'reason'].map((name) => [name, rules[name] ?? {}]))
  return { ...closed({ ...(known as Record<string, object>), ...(body as Record<string, object>) }, ['for']), anyOf }
}

/** `GET|POST /v1/silences`, `DELETE /v1/silences/{name}`: which alerts are sent to no endpoint for a while. */
export function registerSilences(app: FastifyInstance, { clock, policy }: Ports, changer: PolicyChanger): void {
  const length = text('1m to 30d')
  const from = text('RFC 3339, from now on; now without it')
  const silence = object(
    {
      name: text('of the silence'),
      ...choice,
      reason,
      from: text('alerts raised from then on'),
      until: text('the first instant after it'),
      by: text('who made it'),
      state: { type: 'string', enum: ['pending', 'active', 'ended'] },
    },
    [...Object.keys(choice), 'reason'],
  )

  app.get<{ Querystring: PageQuery }>(
    '/v1/silences',
    operation('read', tag, 'Silences there are, and those that ended within five days', {
      query: pageQuery,
      response: { 200: answer('A page', page(silence)), ...problems(503) },
    }),
    async ({ query: { after = '', limit } }, reply) => {
      const { state } = policy
      if (state === undefined) return answerProblem(reply, policyUnread)
      const found = state.page('silence', after, limit + 1)
      return pageOf(
        found.map((one) => shown(one, clock.nowMs())),
        limit,
        ({ name }) => name,
      )
    },
  )

  app.post<{ Body: NewSilence }>(
    '/v1/silences',
    operation('write', tag, 'Keep some alerts from every endpoint for a while', {
      body: closed({ ...choice, from, for: length, reason }, ['for']),
      described: {
        body: described({
          from: { ...from, pattern: timePattern.source },
          for: { ...length, pattern: durationPattern },
        }),
      },
      response: { 201: answer('The silence', silence), ...problems(422, 503) },
    }),
    changing(changer, 201, (state, { body, by }) => planCreate(state, body, by, clock.nowMs())),
  )

  app.delete<{ Params: { readonly name: string } }>(
    '/v1/silences/:name',
    operation('write', tag, 'End a silence: alerts from now on are sent', {
      params: object({ name: text('of the silence') }),
      response: { 204: deleted('Ended'), ...problems(404, 422, 503) },
    }),
    changing(changer, 204, (state, { params: { name } }) => planEnd(state, name, clock.nowMs())),
  )
}
