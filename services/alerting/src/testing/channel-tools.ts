import { systemClock } from '@weir/core/clock.ts'
import { createOutgoing } from '@weir/runtime/outgoing/outgoing.ts'
import type { ChannelTools } from '../deliver/channels/channel.ts'

/** Tools that send no mail and have these variables. */
export const channelTools = (
  environment: Readonly<Record<string, string>>,
  more: Partial<ChannelTools> = {},
): ChannelTools => ({
  environment,
  outgoing: more.outgoing ?? createOutgoing(),
  mailer: { send: async () => ({ status: 0, answer: '' }) },
  templates: { find: () => undefined },
  unsubscribeKeys: () => '',
  consoleUrl: undefined,
  clock: systemClock,
  ...more,
})
