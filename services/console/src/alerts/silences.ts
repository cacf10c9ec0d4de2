import { randomUUID } from 'node:crypto'
import { createSilence, endSilence, listSilences, type NewSilence, type Silence } from '@weir/api/alerts.ts'
import { giveUpAfterMs } from '@weir/contracts/delivery.v1.ts'
import { deleteEntity, type Entity, type JsonObject, putEntity } from '@weir/policy/entities.ts'
import { parseDurationMs, parseTimeMs } from '@weir/policy/policy-values.ts'
import { silenceLongestMs } from '@weir/policy/reader/read-silences.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type ChangePlan, type PolicyChanger, reject } from '@weir/policy-changes/change-policy.ts'
import { changeRejected } from '@weir/policy-changes/change-problems.ts'
import type { FastifyInstance } from 'fastify'
import { pageOfEntities } from '../http/page.ts'
import { servePolicy } from '../http/serve.ts'
import { serveChange } from '../policy/answer-change.ts'
import { noEntity } from '../policy/entities.ts'
import type { Sources } from '../sources.ts'
import { iso } from '../usage/completeness.ts'

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
const keptMs = giveUpAfterMs + dayMs

const timeOf = ({ body }: Entity, name: 'from' | 'until') => parseTimeMs(String(body[name])) ?? 0
/** No schema says how long a duration is, or what time it is. */
const wrong = (path: string, message: string) => changeRejected([{ path, message }])

function shown(silence: Entity, nowMs: number): Silence {
  const isBegun = nowMs >= timeOf(silence, 'from')
  const state = nowMs >= timeOf(silence, 'until') ? 'ended' : isBegun ? 'active' : 'pending'
  return { ...silence.body, name: silence.name, state } as Silence
}

/** Makes a silence, and deletes those that ended long ago. */
function planCreate(state: PolicyState, given: NewSilence, by: string, nowMs: number): ChangePlan<Silence> {
  const { from, for: length, ...what } = given
  const lengthMs = parseDurationMs(length)
  if (lengthMs === undefined || lengthMs < minuteMs || lengthMs > silenceLongestMs) {
    return reject(wrong('for', 'must be a duration from 1m to 30d, such as 2h'))
  }
  const askedMs = from === undefined ? nowMs : parseTimeMs(from)
  if (askedMs === undefined || askedMs < nowMs - clockSlackMs || askedMs > nowMs + aheadMaxMs) {
    return reject(wrong('from', 'must be a time in the next 90 days, such as 2027-01-31T00:00:00Z'))
  }
  // Alerts that were raised before are on their way: none of them is silenced.
  const fromMs = Math.max(askedMs, nowMs)
  const body = { ...what, from: iso(fromMs), until: iso(fromMs + lengthMs), by } as JsonObject
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
  const body = { ...before.body, until: iso(nowMs) }
  const isBegun = nowMs > timeOf(before, 'from')
  return {
    kind: 'change',
    changes: [isBegun ? putEntity({ ...before, origin: 'admin', body }) : deleteEntity('silence', name)],
    lines: [{ what: 'revoke', kind: 'silence', name }],
    answer: undefined,
  }
}

/** `GET|POST /v1/silences`, `DELETE /v1/silences/{name}`: which alerts are sent to no endpoint for a while. */
export function registerSilences(app: FastifyInstance, sources: Sources, changer: PolicyChanger): void {
  const { clock } = sources
  servePolicy(app, sources, listSilences, async (state, { query }) =>
    pageOfEntities(state, 'silence', query, (one) => shown(one, clock.nowMs())),
  )

  serveChange(app, changer, createSilence, (state, { body, by }) => planCreate(state, body, by, clock.nowMs()))

  serveChange(app, changer, endSilence, (state, { params: { name } }) => planEnd(state, name, clock.nowMs()))
}
