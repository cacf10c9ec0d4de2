import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { maxWaitMs } from '@weir/kafka/partition-log.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import type { Readiness } from '@weir/runtime/ops-server.ts'
import { type Config, choice, text, type Variable, wholeNumber } from '@weir/runtime/read-config.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Service } from '@weir/runtime/start-service.ts'
import { PolicyFeed } from './policy-feed.ts'

/** Kafka is asked every few seconds: an age below some of these would come and go while all is well. */
const maxAgeSecondsMin = (3 * maxWaitMs) / 1_000

const age = wholeNumber({
  name: 'WEIR_POLICY_MAX_AGE_S',
  about: 'seconds without contact to Kafka after which the policy is stale; 0: never',
  fallback: '0',
  min: 0,
  max: 604_800,
})

/** Where a service has its policy from, in addition to Kafka. */
export const policySourceVariables = {
  policyFile: text({
    name: 'WEIR_POLICY_FILE',
    about: 'path of the policy to use while Kafka has none; the file is optional',
    fallback: 'weir.yaml',
  }),
  policySnapshot: text({
    name: 'WEIR_POLICY_SNAPSHOT',
    about: "path of this process's copy of the policy, for starts without Kafka; empty: no copy",
    fallback: '',
  }),
} as const

/** What a service does with a policy that Kafka has not confirmed for long. */
export const policyAgeVariables = {
  policyMaxAgeS: {
    ...age,
    parse: (given) => {
      const parsed = age.parse(given)
      const isTooShort = 'value' in parsed && parsed.value > 0 && parsed.value < maxAgeSecondsMin
      return isTooShort ? { problem: `must be 0, or at least ${maxAgeSecondsMin}` } : parsed
    },
  } satisfies Variable<number>,
  onStalePolicy: choice({
    name: 'WEIR_ON_STALE_POLICY',
    about: 'how requests are handled while the policy is stale',
    fallback: 'serve',
    of: ['serve', 'refuse'],
  }),
} as const

/** When a policy that Kafka has not confirmed is too old, and what follows. */
export type StaleRule = Config<typeof policyAgeVariables>

const neverStale: StaleRule = { policyMaxAgeS: 0, onStalePolicy: 'serve' }

/** Whether Kafka has not confirmed the policy for longer than the rule allows. */
export const isStale = ({ status }: Pick<PolicyFeed, 'status'>, { policyMaxAgeS }: StaleRule): boolean =>
  policyMaxAgeS > 0 && status.ageMs > policyMaxAgeS * 1_000

/** Opens a service's policy, with its line in /readyz and its metrics; closed with the service. */
export async function ownPolicyFeed(
  config: Config<typeof policySourceVariables>,
  kafka: KafkaOptions,
  { run, metrics, checkReady }: Service,
  rule: StaleRule = neverStale,
): Promise<PolicyFeed> {
  const { policySnapshot: snapshotPath, policyFile } = config
  const opened = new PolicyFeed({ ...kafka, snapshotPath, seed: () => readSeed(policyFile) })
  const feed = await run.own('policy', opened, (one) => one.close())
  checkReady('policy', () => policyReadiness(feed, rule, policyFile))
  registerScraped(metrics, {
    weir_policy_confirmed_timestamp_seconds: {
      help: 'When Kafka last confirmed that the policy is complete, in seconds since 1970; 0: never',
      read: () => Math.max(0, Date.now() - feed.status.ageMs) / 1_000,
    },
    weir_policy_changes_total: {
      help: 'Policy changes by result',
      label: 'result',
      readAll: () => {
        const { changes: applied, refusedChanges: refused, unreadableRecords: unreadable } = feed.counters
        return { applied, refused, unreadable }
      },
    },
    weir_policy_entities: {
      help: 'Entities of the policy in force',
      label: 'kind',
      readAll: () => sizesOf(feed.policy),
    },
  })
  return feed
}

/** Zeros while there is no policy. */
const sizesOf = (policy: Policy | undefined) => ({
  plan: policy?.plans.size ?? 0,
  limit: policy?.limits.size ?? 0,
  route: policy?.routes.length ?? 0,
  upstream: policy?.upstreams.size ?? 0,
  subject: policy?.subjects.size ?? 0,
  key: policy?.keys.size ?? 0,
  endpoint: policy?.endpoints.size ?? 0,
})

const readSeed = (path: string): Policy | undefined =>
  path === '' || !existsSync(path) ? undefined : requirePolicy(readFileSync(path, 'utf8'), path)

/** What /readyz says of a policy: without one a service is not ready, and with an unconfirmed one it warns. */
export function policyReadiness(
  feed: Pick<PolicyFeed, 'policy' | 'status'>,
  rule: StaleRule,
  policyFile = '',
): Readiness {
  const { policy, status } = feed
  const { waitingFor, ageMs, refused, source } = status
  const why = waitingFor === '' ? '' : `waiting for ${waitingFor}`
  if (policy === undefined) {
    const missing = refused ?? (why === '' ? 'the topic holds none' : why)
    // A relative path is of this process's folder, which is seldom the one that a person has in mind.
    const file = policyFile === '' ? '' : ` (${resolve(policyFile)})`
    return `there is none: ${missing}, and neither a snapshot nor WEIR_POLICY_FILE${file} stands in`
  }
  const age = Number.isFinite(ageMs) ? `for ${Math.round(ageMs / 1_000)} s` : 'since the start'
  if (rule.policyMaxAgeS > 0 && ageMs > rule.policyMaxAgeS * 1_000) {
    const stale = `not confirmed by Kafka ${age}, longer than WEIR_POLICY_MAX_AGE_S; ${why}`
    return rule.onStalePolicy === 'refuse' ? `${stale}; requests are refused` : { warning: stale }
  }
  if (refused !== undefined) return { warning: refused }
  return why === '' ? undefined : { warning: `${why}; the one in force is that of the ${nameOf[source]}` }
}

const nameOf = { none: 'process', seed: 'file', snapshot: 'snapshot', topic: 'topic as it was' } as const
