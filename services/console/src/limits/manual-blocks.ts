import { randomUUID } from 'node:crypto'
import type { Block as ShownBlock } from '@weir/api/limits.ts'
import { blockCaller, type NewBlock } from '@weir/api/limits.ts'
import { deleteEntity, type Entity, type JsonObject, putEntity } from '@weir/policy/entities.ts'
import { networkContains, parseDurationMs, parseTimeMs } from '@weir/policy/policy-values.ts'
import { blockLongestMs } from '@weir/policy/reader/read-blocks.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type ChangePlan, type PolicyChanger, reject } from '@weir/policy-changes/change-policy.ts'
import { changeRejected } from '@weir/policy-changes/change-problems.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import type { FastifyInstance } from 'fastify'
import { serveChange } from '../policy/answer-change.ts'
import type { Sources } from '../sources.ts'
import { iso } from '../usage/completeness.ts'
import type { Block, BlocksAsked } from './list-blocks.ts'

const minuteMs = 60_000
/** So long the list of changes can show what ended; an address is then forgotten. */
const keptMs = 24 * 60 * minuteMs

const timeOf = ({ body }: Entity, name: 'since' | 'until') => parseTimeMs(String(body[name])) ?? 0
const textOf = ({ body }: Entity, name: string) => (typeof body[name] === 'string' ? body[name] : null)

/** As the list has it: no limit set it, and nobody counts what it refuses. */
function blockOf(entity: Entity): Block {
  const ip = textOf(entity, 'ip')
  return {
    id: entity.name,
    limit: null,
    subject: textOf(entity, 'subject'),
    key_id: textOf(entity, 'key'),
    ip: ip?.replace(/\/32$/, '') ?? null,
    exempt: entity.body.exempt === true,
    scope: {},
    sinceMs: timeOf(entity, 'since'),
    untilMs: timeOf(entity, 'until'),
    refusals: null,
    decision: null,
    by: textOf(entity, 'by'),
    reason: textOf(entity, 'reason'),
    isAddressHidden: false,
  }
}

/** The blocks and exemptions by hand that stand, of those that are asked for. */
export function manualBlocks(state: PolicyState, { limit, subject, address }: BlocksAsked, nowMs: number): Block[] {
  if (limit !== undefined) return []
  const isMeant = (one: Block) =>
    one.untilMs > nowMs &&
    (subject === undefined || one.subject === subject) &&
    (address === undefined || (one.ip !== null && networkContains(one.ip, address)))
  return [...state.list('block')].map(blockOf).filter(isMeant)
}

export const shownBlock = ({ sinceMs, untilMs, isAddressHidden: _, ...one }: Block): ShownBlock => ({
  ...one,
  since: iso(sinceMs),
  until: iso(untilMs),
})

/** Blocks or exempts a caller, and deletes what ended long ago. */
function planBlock(state: PolicyState, given: NewBlock, by: string, nowMs: number): ChangePlan<ShownBlock> {
  const { for: length, key_id: key, ip, exempt, ...what } = given
  const lengthMs = parseDurationMs(length)
  if (lengthMs === undefined || lengthMs < minuteMs || lengthMs > blockLongestMs) {
    return reject(changeRejected([{ path: 'for', message: 'must be a duration from 1m to 366d, such as 2h' }]))
  }
  const { ipv6Prefix } = state.policy.identity
  // A caller with an IPv6 address has its whole network.
  const network = ip?.includes('/') === true ? ip : ip && (addressScope(ip, ipv6Prefix) || ip)
  const named = { ...what, ...(key && { key }), ...(network && { ip: network }), ...(exempt === true && { exempt }) }
  const body = { ...named, since: iso(nowMs), until: iso(nowMs + lengthMs), by } as JsonObject
  const entity: Entity = { kind: 'block', name: randomUUID(), origin: 'admin', position: undefined, body }
  const over = [...state.list('block')].filter((one) => timeOf(one, 'until') < nowMs - keptMs)
  return {
    kind: 'change',
    changes: [putEntity(entity), ...over.map(({ name }) => deleteEntity('block', name))],
    lines: [{ what: 'create', kind: 'block', name: entity.name }],
    answer: shownBlock(blockOf(entity)),
  }
}

/** Ends a block by hand now. */
export function planLift(before: Entity, nowMs: number) {
  const answer = { limit: null, subject: textOf(before, 'subject'), lifted: true, forgotten: false, used_up: false }
  if (nowMs >= timeOf(before, 'until')) return { kind: 'nothing', answer: { ...answer, lifted: false } } as const
  const body = { ...before.body, until: iso(nowMs) }
  return {
    kind: 'change',
    changes: [putEntity({ ...before, origin: 'admin', body })],
    lines: [{ what: 'revoke', kind: 'block', name: before.name }],
    answer,
  } as const
}

/** `POST /v1/blocks`: blocks a caller for a while, or exempts an address. */
export function registerManualBlocks(app: FastifyInstance, { clock }: Sources, changer: PolicyChanger): void {
  serveChange(app, changer, blockCaller, (state, { body, by }) => planBlock(state, body, by, clock.nowMs()))
}
