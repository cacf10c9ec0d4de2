import { claimKey } from '@weir/core/alerts/claim.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { type ClaimStore, countedKeptMs, hourMs } from '../raise/claim-store.ts'
import type { FurtherBlocks } from '../types.ts'
import { startRounds } from './rounds.ts'

/** A batch that was begun within the hour may still count blocks; batches are much shorter. */
const graceMs = 60_000
/** An hour whose end every process missed for longer than this has no such alert. */
const hoursBack = 2

/** Finds what the last hours have counted. What was raised before is found again, and has its claim. */
export async function findFurtherBlocks(
  claims: Pick<ClaimStore, 'readFurther'>,
  nowMs: number,
): Promise<FurtherBlocks[]> {
  const thisHour = Math.floor((nowMs - graceMs) / hourMs) * hourMs
  const found: FurtherBlocks[] = []
  for (let back = 1; back <= hoursBack; back += 1) {
    const startMs = thisHour - back * hourMs
    for (const one of await claims.readFurther(startMs)) {
      const { subject, limit, size } = one
      const key = claimKey({ subject, limit, size, threshold: 'blocked', periodStart: String(startMs / 1_000) })
      found.push({
        kind: 'further',
        ...one,
        startMs,
        endMs: startMs + hourMs,
        lifetimeMs: countedKeptMs,
        isRecurring: false,
        thresholds: [{ percent: 100, key }],
      })
    }
  }
  return found
}

/** Raises, when an hour is over, how many blocks had no alert of their own. Every process does: claims decide which. */
export function startFurtherBlocks(options: {
  readonly claims: Pick<ClaimStore, 'readFurther'>
  readonly raise: (found: readonly FurtherBlocks[]) => Promise<void>
  readonly clock: Clock
  readonly stopping: AbortSignal
  readonly log: Logger
}) {
  const { claims, raise, clock, stopping, log } = options
  const round = async () => {
    await raise(await findFurtherBlocks(claims, clock.nowMs()))
    return undefined
  }
  return startRounds(round, { what: 'further blocks not read', stopping, log })
}
