import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { type DigestSpan, readAlertedSubjects, readAlertsWithin } from '@weir/clickhouse/digest-queries.ts'
import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import { type DigestUnit, digestUnits, type Policy } from '@weir/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Redis } from 'ioredis'
import { alertOfRow } from '../record/alert-table.ts'
import { type DigestDue, digestsOf, spansDue } from './digests.ts'
import { createRoundLock, startRounds } from './rounds.ts'

/** Subjects with alerts that are passed over at once: most want no digest. */
const passedMax = 1_000
/** Subjects whose alerts are read together: 20,000 rows at most. */
const readTogetherMax = 100
/** Alerts of a subject in one digest; it counts no more. */
const alertsMax = 200

const lockKey = 'weir:1:watches:digests'
const doneKey = (unit: DigestUnit) => `weir:1:watches:digests:${unit}`
/** Longer than a week: a span is gathered once. */
const doneKeptMs = 15 * 86_400_000

interface DigestWatchOptions {
  readonly clickhouse: ClickHouseClient
  readonly redis: Redis
  readonly policyInForce: () => Policy
  readonly raise: (due: readonly DigestDue[]) => Promise<void>
  readonly clock: Clock
  readonly stopping: AbortSignal
  readonly log: Logger
}

/** Raises the digests of all subjects in a span. Safe to repeat: claims keep each digest one. */
async function gather(
  { clickhouse, policyInForce, raise, stopping }: DigestWatchOptions,
  unit: DigestUnit,
  span: DigestSpan,
) {
  let after: string | undefined = ''
  while (after !== undefined) {
    const found: readonly string[] = await readAlertedSubjects(clickhouse, span, { after, limit: passedMax })
    const policy = policyInForce()
    const wanted = found.filter((subject) => policy.contacts.get(subject)?.digest === unit)
    for (let at = 0; at < wanted.length; at += readTogetherMax) {
      // What is left is raised by the next process.
      if (stopping.aborted) return false
      const rows = await readAlertsWithin(clickhouse, span, wanted.slice(at, at + readTogetherMax), alertsMax)
      const alerts: readonly AlertV1[] = rows.flatMap(alertOfRow)
      const bySubject = Map.groupBy(alerts, ({ subject }) => subject)
      await raise([...bySubject].flatMap(([subject, own]) => digestsOf(policy, { unit, subject, alerts: own }, span)))
    }
    after = found.length < passedMax ? undefined : found.at(-1)
  }
  return true
}

/**
 * Raises, once a day and once a week, a digest for each subject whose contact asks for one and that had alerts. One
 * process does; if it dies, the next one raises the rest.
 */
export async function startDigestWatch(options: DigestWatchOptions) {
  const { redis, policyInForce, clock, stopping, log } = options
  const hasLock = createRoundLock(redis, lockKey)
  const round = async () => {
    if (!(await hasLock())) return
    for (const unit of digestUnits) {
      const gathered = await redis.get(doneKey(unit))
      for (const span of spansDue(unit, clock.nowMs(), gathered === null ? undefined : Number(gathered))) {
        if (!(await gather(options, unit, span))) return
        await redis.set(doneKey(unit), String(span.fromMs), 'PX', doneKeptMs)
      }
    }
  }
  const turn = async () => {
    const hasContacts = [...policyInForce().endpoints.values()].some(({ type }) => type === 'subject')
    if (hasContacts) await round()
    return undefined
  }
  return startRounds(turn, { what: 'digests not gathered', stopping, log })
}
