import type { AlertOf } from '@weir/contracts/alert.v1.ts'
import { resolvedKey } from '@weir/core/alerts/claim.ts'
import { alertingUnits } from '@weir/core/alerts/reached-thresholds.ts'
import { definedFields } from '@weir/core/defined-fields.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { subjectNamed } from '@weir/policy/named-subject.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { type AskedScope, findAskedLimits } from '@weir/redis/asked-limits.ts'
import { createLimitAdmin } from '@weir/redis/limit-admin.ts'
import { serverFinder } from '@weir/redis/limit-connection.ts'
import { keyOfScope } from '@weir/redis/recorded-scope.ts'
import { LRUCache } from 'lru-cache'
import { readOpenAlertIds } from '../record/alert-queries.ts'
import { readAlerts } from '../record/alert-table.ts'
import type { QuotaResolved } from '../types.ts'
import { createRoundLock, startRounds, type WatchOptions } from './rounds.ts'

type ReachedAlert = AlertOf<'weir.quota.reached'>
type End = Pick<QuotaResolved, 'alert' | 'reason' | 'size' | 'used'>

const lockKey = 'weir:1:watches:resolved'
/** Claims outlive the days within which an alert is resolved. */
const claimLifetimeMs = 8 * 86_400_000
/** Alerts of one query: about a megabyte. */
const pageRows = 1_000
/** Begins no page of one kind after this long, so that both kinds end before the next round. */
const sweepMs = 20_000
/** Counts read in a round: some 0.2 s of Redis's time in a minute. The next round goes on behind them. */
const countsMax = 2_000
/** Counts read concurrently: about a millisecond of Redis's time, which decisions wait for. */
const countsAtOnce = 20
/**
 * Use is less when it stays below this share of the threshold: what was only held, and settled for less, resolves
 * nothing when use goes on growing.
 */
const lessShare = 0.9
/** For how long it stays there: Redis that lost its data has its counts again before. */
const lessForMs = 50_000
/** Alerts with less use, and subjects that were reset, between two rounds; the least recent are forgotten. */
const rememberedMax = 10_000

/** Returns the limit as the alert's subject has it; `gone` if it no longer applies, undefined if that is unknown. */
function limitNow(policy: Policy, { subject, data: { limit: name, by = {} } }: ReachedAlert) {
  // Else the names of all subjects would be searched for a similar one.
  if (subjectNamed(policy, subject) === undefined) return undefined
  const found = findAskedLimits(policy, { subject, limit: name, ...definedFields({ keyId: by.key }) })
  if (found.kind !== 'found') return policy.subjects.get(subject) === undefined ? undefined : 'gone'
  const [limit] = found.asked.limits
  return limit && { limit: limit.limit, scope: found.asked.scope }
}

/** Returns when an alert is over at the latest: of a limit with a window, when it may be raised again. */
function endOf(policy: Policy, { time, data: { limit, period_end } }: ReachedAlert): number {
  const { span, cooldownMs = 0 } = policy.limits.get(limit) ?? {}
  return span?.kind === 'window' ? Date.parse(time) + cooldownMs : Date.parse(period_end)
}

/** Returns what finds alerts that are over, by the policy and the counts in Redis. */
function createJudge({ redis, clock }: Pick<WatchOptions<QuotaResolved>, 'redis' | 'clock'>) {
  const serverOf = serverFinder(redis)
  const admin = createLimitAdmin(serverOf)
  /** Since when less is used. */
  const lessSinceMs = new LRUCache<string, number>({ max: rememberedMax })
  const resetMs = new LRUCache<string, number>({ max: rememberedMax })

  /** Returns what is used of the count that an alert names; undefined if it cannot be found, or Redis lost it. */
  async function usedNow({ subject, time, data: { by = {} } }: ReachedAlert, limit: Limit, scope: AskedScope) {
    const key = keyOfScope({ limit, subject, root: scope.above?.at(-1)?.id, by })
    if (key === undefined) return undefined
    const isThere = (await serverOf(key).getrange(key, 0, 0)) !== ''
    const wasReset = (resetMs.get(subject) ?? 0) > Date.parse(time)
    if (!isThere && !wasReset && limit.span.kind === 'period') return undefined
    const { now } = await admin.peek(limit, key, scope, 0)
    return { used: now.limits[0]?.used ?? 0, wasReset }
  }

  return {
    reset(subjects: readonly string[]): void {
      for (const subject of subjects) resetMs.set(subject, clock.nowMs())
    },
    /** Returns how an alert has ended before its time, by a changed limit or by less use; undefined if it has not. */
    async endBefore(alert: ReachedAlert, policy: Policy): Promise<End | undefined> {
      const { id, data } = alert
      const now = limitNow(policy, alert)
      if (now === undefined) return undefined
      if (now === 'gone') return { alert, reason: 'size_changed', size: data.size, used: data.used }
      const { limit, scope } = now
      const { size } = limit
      const isChanged = size !== data.size
      // In a window use becomes less by itself, and no further alert is raised before the cooldown is over.
      if (!isChanged && limit.span.kind === 'window') return undefined
      const found = await usedNow(alert, limit, scope)
      const units = alertingUnits(data, size, limit.thresholds)
      const isLess = found !== undefined && found.used < (isChanged ? units : units * lessShare)
      if (!isLess) {
        lessSinceMs.delete(id)
        return undefined
      }
      const sinceMs = lessSinceMs.get(id) ?? clock.nowMs()
      lessSinceMs.set(id, sinceMs)
      if (!isChanged && !found.wasReset && clock.nowMs() - sinceMs < lessForMs) return undefined
      return { alert, reason: isChanged ? 'size_changed' : 'used_less', size, used: found.used }
    },
  }
}

const candidateOf = (end: End): QuotaResolved => ({
  kind: 'resolved',
  ...end,
  subject: end.alert.subject,
  startMs: Date.parse(end.alert.data.period_start),
  endMs: Date.parse(end.alert.data.period_end),
  lifetimeMs: claimLifetimeMs,
  isRecurring: false,
  thresholds: [{ percent: end.alert.data.percent, key: resolvedKey(end.alert.subject, end.alert.id) }],
})

/**
 * Returns a round over the alerts that nothing has resolved, as ClickHouse has them: what it cannot do now, a later
 * round does. Rejects with the first fault, when it has done what it could.
 */
export function createResolvedRound(options: WatchOptions<QuotaResolved>) {
  const { clickhouse, policyInForce, raise, clock, stopping } = options
  const judge = createJudge(options)
  /** Where the next round goes on; empty at the beginning. */
  const after = { ended: '', running: '' }

  async function sweep(kind: keyof typeof after): Promise<unknown> {
    const untilMs = clock.nowMs() + sweepMs
    let fault: unknown
    let isRedisDown = false
    let counts = 0
    do {
      const [policy, nowMs] = [policyInForce(), clock.nowMs()]
      const about = { isEnded: kind === 'ended', nowMs, after: after[kind], limit: pageRows }
      const ids = await readOpenAlertIds(clickhouse, about)
      const read = [...(await readAlerts(clickhouse, ids)).values()]
      const open = read.flatMap((alert) => (alert.type === 'weir.quota.reached' ? [alert] : []))
      const { over = [], rest = [] } = Object.groupBy(open, (one) => (endOf(policy, one) <= nowMs ? 'over' : 'rest'))
      const ends = over.map((alert): End => {
        const { size, used } = alert.data
        return { alert, reason: 'period_ended', size, used }
      })
      for (let at = 0; at < rest.length && !isRedisDown; at += countsAtOnce) {
        const some = rest.slice(at, at + countsAtOnce).map((alert) => judge.endBefore(alert, policy))
        const all = await Promise.allSettled(some)
        for (const found of all) {
          if (found.status === 'rejected') fault ??= found.reason
          else if (found.value !== undefined) ends.push(found.value)
        }
        isRedisDown = all.every(({ status }) => status === 'rejected')
      }
      await raise(ends.map(candidateOf))
      after[kind] = ids.length < pageRows ? '' : (ids.at(-1) ?? '')
      if (kind === 'running') counts += rest.length
    } while (after[kind] !== '' && counts < countsMax && clock.nowMs() < untilMs && !stopping.aborted)
    return fault
  }

  return {
    /** Notes whose counts were reset: only then is a count that Redis does not have known to be 0. */
    reset: judge.reset,
    async round(): Promise<void> {
      // Whether or not counts can be read, what is over by the clock comes first.
      const fault = (await sweep('ended')) ?? (await sweep('running'))
      if (fault !== undefined) throw fault
    },
  }
}

/** Resolves alerts, every minute, in one process of all; if two do, claims keep what they raise one. */
export async function startResolvedWatch(options: WatchOptions<QuotaResolved>) {
  const { round, reset } = createResolvedRound(options)
  const hasLock = createRoundLock(options.redis, lockKey)
  const turn = async () => {
    if (await hasLock()) await round()
    return undefined
  }
  return { reset, ...startRounds(turn, { ...options, what: 'alerts not resolved' }) }
}
