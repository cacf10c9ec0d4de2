import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import type { PolicyFeed, PolicyUpdate } from '@weir/policy-feed/policy-feed.ts'
import { expect, test } from 'vitest'
import { followPolicy } from './follow-policy.ts'

const policy = requirePolicy('{ version: 1 }', 'weir.yaml')
const news = (isReplaced: boolean): PolicyUpdate => ({ policy, isReplaced, changes: [], resets: [] })

test('the offset in force is that of the last change that the feed took over, and unknown for the file', async () => {
  let listener: (update: PolicyUpdate) => void = () => undefined
  const feed: { checkpoint: PolicyFeed['checkpoint'] } & Parameters<typeof followPolicy>[0] = {
    firstPolicy: async () => policy,
    policy,
    checkpoint: undefined,
    onChange: (given) => {
      listener = given
    },
    status: { source: 'seed', waitingFor: '', ageMs: 0, refused: undefined },
  }
  const rule = { onStalePolicy: 'serve', policyMaxAgeS: 60 } as const
  const live = await followPolicy(feed, rule, { invalidate: () => undefined })
  const offsets = [live.view.offset()]
  for (const [offset, isReplaced] of [
    [412n, true],
    [415n, false],
  ] as const) {
    feed.checkpoint = { offset, id: '' }
    listener(news(isReplaced))
    offsets.push(live.view.offset())
  }
  expect(offsets).toEqual([-1, 412, 415])
})
