import type { PolicyFeed } from '@weir/policy-feed/policy-feed.ts'
import { isStale, type StaleRule } from '@weir/policy-feed/service-policy.ts'
import type { LayeredStore } from '@weir/redis/layers/all-layers.ts'
import { createLivePolicy, type LivePolicy } from './policy-view.ts'

/**
 * The policy of the feed as the doors see it, from the first one on. With every change the refusals that were given from
 * memory are forgotten; counts go on.
 */
export async function followPolicy(
  feed: PolicyFeed,
  rule: StaleRule,
  layers: Pick<LayeredStore, 'forget'>,
): Promise<LivePolicy> {
  const first = await feed.firstPolicy()
  const mayRefuse = rule.onStalePolicy === 'refuse'
  const live = createLivePolicy(feed.policy ?? first, () => mayRefuse && isStale(feed, rule))
  feed.onChange(({ policy, isReplaced }) => {
    if (isReplaced) live.replace(policy)
    layers.forget()
  })
  return live
}
