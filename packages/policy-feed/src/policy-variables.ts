import { maxWaitMs } from '@weir/kafka/partition-log.ts'
import { choice, text, type Variable, wholeNumber } from '@weir/runtime/read-config.ts'

/** Kafka is asked every few seconds: an age below some of these would come and go while all is well. */
const maxAgeSecondsMin = (3 * maxWaitMs) / 1_000

const age = wholeNumber({
  name: 'WEIR_POLICY_MAX_AGE_S',
  about: 'seconds without word from Kafka after which the policy is stale; 0 for never',
  fallback: '0',
  min: 0,
  max: 604_800,
})

/** Where a service has its policy from, beside Kafka. */
export const policySourceVariables = {
  policyFile: text({
    name: 'WEIR_POLICY_FILE',
    about: 'path of the policy that is in force while Kafka holds none; it need not be there',
    fallback: 'weir.yaml',
  }),
  policySnapshot: text({
    name: 'WEIR_POLICY_SNAPSHOT',
    about: "path of this process's own copy of the policy, for starts without Kafka; empty for none",
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
    about: 'what becomes of requests while the policy is stale',
    fallback: 'serve',
    of: ['serve', 'refuse'],
  }),
} as const
