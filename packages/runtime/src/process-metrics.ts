import { createRequire } from 'node:module'
import type { IntervalHistogram } from 'node:perf_hooks'
import { collectDefaultMetrics, type Registry } from 'prom-client'

/** prom-client's own 10 ms wake an idle process a hundred times a second, which is most of what it then costs. */
const samplePeriodMs = 100

/**
 * The delays of a histogram beyond the time between two samples, in nanoseconds; 0 without a sample. The original's
 * values include that time.
 */
function beyondPeriod(histogram: IntervalHistogram) {
  const beyond = (ns: number) => (histogram.count === 0 ? 0 : Math.max(0, ns - samplePeriodMs * 1e6))
  return {
    enable: () => histogram.enable(),
    reset: () => histogram.reset(),
    percentile: (share: number) => beyond(histogram.percentile(share)),
    get min() {
      return beyond(histogram.min)
    },
    get max() {
      return beyond(histogram.max)
    },
    get mean() {
      return beyond(histogram.mean)
    },
    get stddev() {
      return histogram.count === 0 ? 0 : histogram.stddev
    },
  }
}

/** Registers the usual metrics of Node and the process, each with `weir_` before its name. */
export function collectProcessMetrics(register: Registry): void {
  // prom-client has no option to measure the event loop in another way: it finds this function for its one call.
  const hooks: typeof import('node:perf_hooks') = createRequire(import.meta.url)('node:perf_hooks')
  const { monitorEventLoopDelay } = hooks
  Object.assign(hooks, {
    monitorEventLoopDelay: () => beyondPeriod(monitorEventLoopDelay({ resolution: samplePeriodMs })),
  })
  try {
    collectDefaultMetrics({ register, prefix: 'weir_' })
  } finally {
    Object.assign(hooks, { monitorEventLoopDelay })
  }
}
