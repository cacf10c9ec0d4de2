import type { Logger } from '@weir/runtime/logger.ts'
import type { DeliveryJob } from './delivery-job.ts'
import type { Dispatcher } from './dispatcher.ts'

export interface SweepCounters {
  /** Jobs that Redis had lost. */
  recreated: number
}

/**
 * Returns the function that finds unfinished deliveries whose jobs Redis has lost, and queues those jobs again for the
 * same time.
 */
export function createSweep(options: {
  readonly queue: Pick<Dispatcher, 'enqueue' | 'missing'>
  /** Reads the deliveries that are unfinished as far as ClickHouse knows, page by page. */
  readonly readUnfinished: () => AsyncIterable<readonly DeliveryJob[]>
  readonly counters: SweepCounters
  readonly log: Logger
}): () => Promise<void> {
  const { queue, readUnfinished, counters, log } = options
  return async function sweep() {
    for await (const unfinished of readUnfinished()) {
      const lost = await queue.missing(unfinished)
      if (lost.length === 0) continue
      await queue.enqueue(lost)
      counters.recreated += lost.length
      log.warn({ jobs: lost.length }, 'deliveries that the queue had lost are queued again')
    }
  }
}
