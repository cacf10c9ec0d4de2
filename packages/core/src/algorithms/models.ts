import type { Algorithm } from '../limits/limit.ts'
import { concurrency } from './concurrency.ts'
import { fixedWindow } from './fixed-window.ts'
import type { AlgorithmModel } from './plan.ts'
import { slidingLog } from './sliding-log.ts'
import { slidingWindow } from './sliding-window.ts'
import { tokenBucket } from './token-bucket.ts'

/** The model of each algorithm, for code that keeps its state without looking into it. */
export const algorithmModels: Readonly<Record<Algorithm, AlgorithmModel<object>>> = {
  fixed_window: fixedWindow,
  sliding_window: slidingWindow,
  sliding_log: slidingLog,
  token_bucket: tokenBucket,
  concurrency,
}
