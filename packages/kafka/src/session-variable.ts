import { wholeNumber } from '@weir/runtime/read-config.ts'

/**
 * The group session of every consumer: how soon a partition passes on from a process that died, against how long one
 * may be stuck without losing it. The bounds are the broker's own defaults.
 */
export const sessionVariable = wholeNumber({
  name: 'WEIR_KAFKA_SESSION_MS',
  about: 'after so long a silent consumer loses its partitions',
  fallback: '30000',
  min: 6_000,
  max: 1_800_000,
})
