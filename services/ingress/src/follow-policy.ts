import type { PolicyFeed } from '@weir/policy-feed/policy-feed.ts'
import { isStale, type StaleRule } from '@weir/policy-feed/service-policy.ts'
import type { Layers } from '@weir/redis/layers/all-layers.ts'
import { createLivePolicy, type LivePolicy } from './policy-view.ts'

/**
 * Follows the feed from its first policy on. Every change invalidates cached denials; counts go on.
 */
export async function followPolicy(
  feed: Pick<PolicyFeed, 'firstPolicy' | 'policy' | 'checkpoint' | 'onChange' | 'status'>,
  rule: StaleRule,
  layers: Pick<Layers, 'invalidate'>,
): Promise<LivePolicy> {
  const first = await feed.firstPolicy()
  const mayRefuse = rule.onStalePolicy === 'refuse'
  // Of the seed there is none.
  const offset = () => Number(feed.checkpoint?.offset ?? -1n)
  const live = createLivePolicy(feed.policy ?? first, () => mayRefuse && isStale(feed, rule), offset())
  feed.onChange(({ policy, isReplaced }) => {
    if (isReplaced) live.replace(policy, offset())
    else live.moveTo(offset())
    layers.invalidate()
  })
  return live
}
