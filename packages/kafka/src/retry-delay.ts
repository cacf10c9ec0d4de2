import { backoffMs } from '@weir/runtime/backoff.ts'

/** Long enough for a new leader to be named at first, and the longest pause once Kafka is back. */
const bounds = { firstMs: 100, maxMs: 5_000 }

/** Returns the pause before the attempt at Kafka that follows `failures` failed attempts in a row. */
export const retryDelayMs = (failures: number): number => backoffMs(failures, bounds)
