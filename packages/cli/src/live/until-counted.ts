import { setTimeout as delay } from 'node:timers/promises'
import type { DecisionPage } from '@weir/api/decisions.ts'

/** How long the tables may be behind: what is not in them by then is said to be missing. */
const meteredWithinMs = 15_000
const askEveryMs = 500

/**
 * Asks for decisions until the answer has all that was decided before the first question, for at most 15 s.
 *
 * @returns the last answer, and whether it has all.
 */
export async function untilCounted(
  ask: () => Promise<DecisionPage>,
  signal?: AbortSignal,
): Promise<{ readonly page: DecisionPage; readonly isComplete: boolean }> {
  const endsMs = performance.now() + meteredWithinMs
  let page = await ask()
  const askedMs = Date.parse(page.to)
  for (;;) {
    const isComplete = page.complete_through !== null && Date.parse(page.complete_through) >= askedMs
    if (isComplete || performance.now() >= endsMs) return { page, isComplete }
    await delay(askEveryMs, undefined, signal && { signal })
    page = await ask()
  }
}
