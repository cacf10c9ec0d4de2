import type { Block as ShownBlock } from '@weir/api/limits.ts'
import { shutOutMsOf } from '@weir/core/limits/exceeding.ts'
import { isOfOneSubject, type Limit } from '@weir/core/limits/limit.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { rootsOf } from '@weir/policy/ancestors.ts'
import { ownLimitSetsOf, type Policy } from '@weir/policy/policy.ts'
import { addressForms, isWholeAddress } from '@weir/redis/recorded-scope.ts'
import type { Sources } from '../sources.ts'
import type { BlockRow } from './block-queries.ts'
import type { LimitSource } from './limit-source.ts'

/** Most blocks of an answer, newest first: a firewall's list of that length is still read within a second. */
const blocksMax = 10_000

/** Which blocks are asked for. */
export interface BlocksAsked {
  readonly limit?: string | undefined
  readonly subject?: string | undefined
  /** As limits count by it. */
  readonly address?: string | undefined
}

/** A block that stands. */
export interface Block extends Omit<ShownBlock, 'since' | 'until'> {
  readonly sinceMs: number
  readonly untilMs: number
  /** Whether it is of an address that records do not have whole. */
  readonly isAddressHidden: boolean
}

/** Every limit that blocks, for some subject at least, and the longest block of all. */
function blockingOf(policy: Policy) {
  const versions = [...policy.limits.values(), ...[...ownLimitSetsOf(policy)].flatMap((own) => [...own.values()])]
  const blocking = versions.filter((limit) => shutOutMsOf(limit) > 0)
  const names = new Set(blocking.map(({ name }) => name))
  const limits = [...names].flatMap((name) => policy.limits.get(name) ?? [])
  return { limits, longestMs: Math.max(0, ...blocking.map(shutOutMsOf)) }
}

function scopeOf(policy: Policy, row: BlockRow) {
  const limit = policy.subjects.get(row.subject)?.ownLimits.get(row.name) ?? policy.limits.get(row.name)
  const root = rootsOf(policy)(row.subject)
  return limit === undefined ? [] : [{ limit, subject: row.subject, root, by: row.by, row }]
}

function addressOf({ limit, subject, by }: { limit: Limit; subject: string; by: BlockRow['by'] }): string | null {
  const counted = limit.by.some(({ kind }) => kind === 'ip') ? (by.ip ?? '') : subject.replace(/^(?!ip:).*|^ip:/, '')
  return isWholeAddress(counted) ? counted : null
}

/**
 * Lists the blocks that stand now: records say which there may be, Redis which there are. `isWhole` is false where
 * there may be more. Rejects when ClickHouse or Redis does not answer.
 */
export async function findBlocks(
  { limits: source, clock }: Pick<Sources, 'clock'> & { readonly limits: LimitSource },
  policy: Policy,
  reach: Reach,
  { limit, subject, address }: BlocksAsked,
): Promise<{ readonly blocks: readonly Block[]; readonly isWhole: boolean }> {
  const { limits, longestMs } = blockingOf(policy)
  const asked = limits.filter(({ name }) => limit === undefined || name === limit)
  if (asked.length === 0) return { blocks: [], isWhole: true }
  const rows = await source.blocks.read(reach, {
    limits: asked.map(({ name }) => name),
    ofOneSubject: asked.filter(({ by }) => isOfOneSubject(by)).map(({ name }) => name),
    longestMs,
    nowMs: clock.nowMs(),
    subject,
    rowsMax: blocksMax + 1,
    addresses: address === undefined ? undefined : addressForms(address),
  })
  const scopes = rows.slice(0, blocksMax).flatMap((row) => scopeOf(policy, row))
  const found = await source.blocks.find(scopes)
  const blocks = found.blocks.map(({ scope, id, untilMs }): Block => {
    const { name, decision, refusals, since_ms: sinceMs, by } = scope.row
    const ip = addressOf(scope)
    const isAddressHidden = ip === null && scope.limit.by.some(({ kind }) => kind === 'ip')
    const of = scope.subject === '' ? null : scope.subject
    return { id, limit: name, subject: of, ip, scope: by, sinceMs, untilMs, refusals, decision, isAddressHidden }
  })
  return { blocks, isWhole: found.isWhole && rows.length <= blocksMax }
}
