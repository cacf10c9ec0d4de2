import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv5 } from '@weir/core/ids.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import { LRUCache } from 'lru-cache'
import type { Crossing } from './crossings.ts'
import type { AlertTopic, ClaimStore } from './ports.ts'

/** Namespace of alert ids: an alert's id follows from its claim alone, so a repeated alert is the same alert. */
const alertNamespace = '5b3d7a52-4f0e-5c35-9f5c-3d1e6c2b8a47'

/** A period that ended longer ago is over: its alert would only confuse. */
const lateMs = 15 * 60_000
/** Claims remembered as done, so that a subject at its limit costs Redis nothing more; those longest unused go first. */
const rememberedMax = 100_000

export interface AlertCounters {
  raised: number
  superseded: number
  late: number
}

function alertOf(crossing: Crossing, percent: number, key: string, nowMs: number): AlertV1 {
  const { subject, limit, size, used, decisionId, periodStartMs, periodEndMs } = crossing
  return {
    id: uuidv5(alertNamespace, key),
    type: 'weir.quota.reached',
    subject,
    time: new Date(nowMs).toISOString(),
    data: {
      limit,
      size,
      used,
      percent,
      period_start: new Date(periodStartMs).toISOString(),
      period_end: new Date(periodEndMs).toISOString(),
      decision_id: decisionId,
    },
  }
}

/** Raises what a batch of decisions has crossed. Safe to repeat: every claim is taken once, by whichever process. */
export function createAlertRaiser(options: {
  readonly claims: ClaimStore
  readonly topic: AlertTopic
  readonly clock: Clock
  readonly counters: AlertCounters
  readonly crash?: CrashPoint
}): (crossings: readonly Crossing[]) => Promise<void> {
  const { claims, topic, clock, counters, crash = noCrash } = options
  const remembered = new LRUCache<string, true>({ max: rememberedMax })

  const raise = async (crossing: Crossing) => {
    const open = crossing.thresholds.filter(({ key }) => !remembered.has(key))
    if (open.length === 0) return
    const { lifetimeMs } = crossing
    // 1. Claim. A crash after it leaves `pending`, and whoever reads the decision again goes on from there.
    const states = await claims.claim(open.map(({ key }) => ({ key, lifetimeMs })))
    crash('claim')
    const ours = open.filter((_, at) => states[at] !== 'done')
    const [highest, ...lower] = ours
    if (highest !== undefined) {
      // 2. Close the lower ones. Closed after the publish, a crash in between would raise them as well.
      if (lower.length > 0) await claims.finish(lower.map(({ key }) => key))
      crash('supersede')
      counters.superseded += lower.length
      // 3. Publish. A crash after it publishes again, under the same id.
      await topic.publish(alertOf(crossing, highest.percent, highest.key, clock.nowMs()))
      crash('publish')
      // 4. Done. The batch's offset is committed after all of this.
      await claims.finish([highest.key])
      crash('done')
      counters.raised += 1
    }
    for (const { key } of open) remembered.set(key, true)
  }

  return async function raiseAlerts(crossings) {
    for (const crossing of crossings) {
      if (clock.nowMs() - crossing.periodEndMs > lateMs) counters.late += 1
      else await raise(crossing)
    }
  }
}
