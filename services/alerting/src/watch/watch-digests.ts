import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { type DigestSpan, readAlertedSubjects, readAlertsWithin } from '@weir/clickhouse/digest-queries.ts'
import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import { type DigestUnit, digestUnits, type Policy } from '@weir/policy/policy.ts'
import { type RedisServers, serverFinder } from '@weir/redis/limit-connection.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { AlertTemplates } from '../deliver/alert-templates.ts'
import { alertOfRow } from '../record/alert-table.ts'
import { type DigestDue, digestsOf, type Ended, endsDue, spansEnded, timeZoneOf, widestSpan } from './digests.ts'
import { createRoundLock, startRounds } from './rounds.ts'

/** Subjects with alerts that are passed over at once: most want no digest. */
const passedMax = 1_000
/** Subjects whose alerts are read together: 20,000 rows at most. */
const readTogetherMax = 100
/** Alerts of a subject in one digest; it counts no more. */
const alertsMax = 200

const lockKey = 'weir:1:watches:digests'
const doneKey = (unit: DigestUnit) => `weir:1:watches:digests:${unit}`
/** Longer than what is gathered later: two weeks. */
const doneKeptMs = 15 * 86_400_000

interface DigestWatchOptions {
  readonly clickhouse: ClickHouseClient
  readonly redis: RedisServers
  readonly policyInForce: () => Policy
  readonly templates: Pick<AlertTemplates, 'find'>
  readonly raise: (due: readonly DigestDue[]) => Promise<void>
  readonly clock: Clock
  readonly stopping: AbortSignal
  readonly log: Logger
}

/** Groups subjects whose contacts want this digest by the days or weeks of theirs that ended. */
function bySpan(policy: Policy, unit: DigestUnit, ended: Ended, found: readonly string[]) {
  const spansOf = new Map<string, readonly DigestSpan[]>()
  const groups = new Map<string, { readonly span: DigestSpan; readonly subjects: string[] }>()
  for (const subject of found) {
    if (policy.contacts.get(subject)?.digest !== unit) continue
    const timeZone = timeZoneOf(policy, subject)
    const spans = spansOf.get(timeZone) ?? spansEnded(unit, timeZone, ended)
    spansOf.set(timeZone, spans)
    for (const span of spans) {
      const name = `${span.fromMs} ${span.toMs}`
      const group = groups.get(name) ?? { span, subjects: [] }
      group.subjects.push(subject)
      groups.set(name, group)
    }
  }
  return groups.values()
}

/** Raises the digests of all days or weeks that ended. Safe to repeat: claims keep each digest one. */
async function gather(options: DigestWatchOptions, unit: DigestUnit, ended: Ended) {
  const { clickhouse, policyInForce, raise, stopping, templates } = options
  let after: string | undefined = ''
  while (after !== undefined) {
    const part = { after, limit: passedMax }
    const found: readonly string[] = await readAlertedSubjects(clickhouse, widestSpan(unit, ended), part)
    const policy = policyInForce()
    for (const { span, subjects } of bySpan(policy, unit, ended, found)) {
      for (let at = 0; at < subjects.length; at += readTogetherMax) {
        // What is left is raised by the next process.
        if (stopping.aborted) return false
        const rows = await readAlertsWithin(clickhouse, span, subjects.slice(at, at + readTogetherMax), alertsMax)
        const alerts: readonly AlertV1[] = rows.flatMap(alertOfRow)
        const own = [...Map.groupBy(alerts, ({ subject }) => subject)]
        await raise(own.flatMap(([subject, alerts]) => digestsOf(policy, { unit, subject, alerts }, span, templates)))
      }
    }
    after = found.length < passedMax ? undefined : found.at(-1)
  }
  return true
}

/**
 * Raises, at the end of each day or week of a subject, a digest if its contact asks for one and there were alerts. One
 * process does; if it dies, the next one raises the rest.
 */
export async function startDigestWatch(options: DigestWatchOptions) {
  const { redis, policyInForce, clock, stopping, log } = options
  const hasLock = createRoundLock(redis, lockKey)
  const serverOf = serverFinder(redis)
  const round = async () => {
    if (!(await hasLock())) return
    for (const unit of digestUnits) {
      const key = doneKey(unit)
      const gathered = await serverOf(key).get(key)
      const ended = endsDue(unit, clock.nowMs(), gathered === null ? undefined : Number(gathered))
      if (ended === undefined) continue
      if (!(await gather(options, unit, ended))) return
      await serverOf(key).set(key, String(ended.untilMs), 'PX', doneKeptMs)
    }
  }
  const turn = async () => {
    const hasContacts = [...policyInForce().endpoints.values()].some(({ type }) => type === 'subject')
    if (hasContacts) await round()
    return undefined
  }
  return startRounds(turn, { what: 'digests not gathered', stopping, log })
}
