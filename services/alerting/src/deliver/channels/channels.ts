import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { Endpoint, EndpointOf, Target } from '@weir/policy/policy.ts'
import type { Environment } from '@weir/runtime/read-config.ts'
import { type AttemptResult, type Channel, type ChannelTools, unsent } from './channel.ts'
import { email } from './email.ts'
import { pagerduty } from './pagerduty.ts'
import { slack } from './slack.ts'
import { teams } from './teams.ts'
import { webhook } from './webhook.ts'

/** A channel for every type of endpoint but `subject`, whose alerts are sent by mail and webhook. */
const channels: { readonly [T in Target['type']]: Channel<EndpointOf<T>> } = { webhook, slack, teams, pagerduty, email }

/** The names of the channels, as endpoints and metrics have them. */
export const channelNames = Object.keys(channels) as readonly Target['type'][]

const channelOf = ({ type }: Target): Channel => channels[type]

/** Returns what a disabled endpoint is known by; it holds no secret. */
export const addressOf = (target: Target): string => channelOf(target).addressOf(target)

/** Returns why nothing can be sent to an endpoint, and what to do; undefined if alerts can be sent. */
export const findProblem = (endpoint: Endpoint, environment: Environment): string | undefined =>
  // Of a contact nothing is known before a delivery, whose row says what is missing.
  endpoint.type === 'subject' ? undefined : channelOf(endpoint).findProblem(endpoint, environment)

/** Makes one attempt. Never rejects, and ends within its own deadline. */
export type SendAlert = (target: Target, alert: AlertV1) => Promise<AttemptResult>

/** Returns the function that makes one attempt by the channel of the target. */
export const createAlertSender =
  (tools: ChannelTools): SendAlert =>
  async (target, alert) => {
    const channel = channelOf(target)
    try {
      const result = await channel.send(target, alert, tools)
      return { ...result, verdict: channel.verdicts[result.status] }
    } catch (error) {
      // An alert of another program may have a value that no words can be made of.
      return unsent(error instanceof Error ? error.message : String(error))
    }
  }
