import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { Tables } from '../../support/servers/tables.ts'
import type { Program } from '../ingress/start-program.ts'
import { processCpuSeconds } from '../process-cpu.ts'

/** How a consumer emptied a full topic. */
export interface Drained {
  readonly eventsPerSecond: number
  /** Microseconds an event, of all threads. */
  readonly consumerCpuUs: number
  readonly clickhouseCpuUs: number
}

/** Of what is in the topic: before it, a process is warming up, and holds more than it has inserted. */
const warmShare = 0.2
const pollMs = 50
const deadlineMs = 300_000

/**
 * Starts a consumer on a full topic and waits until ClickHouse has all of it. The figures are those of the last four
 * fifths, so that neither the start of the process nor joining the group counts.
 */
export async function drain(start: () => Promise<Program>, tables: Tables, events: number): Promise<Drained> {
  const consumer = await start()
  try {
    const look = async () => {
      const [{ n } = { n: '0' }] = await tables.rows<{ n: string }>('SELECT count() AS n FROM weir.decisions')
      return {
        rows: Number(n),
        at: performance.now(),
        consumer: processCpuSeconds(consumer.pid),
        clickhouse: processCpuSeconds(tables.pid()),
      }
    }
    let first = await look()
    let last = first
    const isDone = await waitUntil(
      async () => {
        last = await look()
        if (first.rows < events * warmShare) first = last
        return last.rows >= events
      },
      { deadlineMs, everyMs: pollMs },
    )
    if (isDone !== true) throw new Error(`only ${last.rows} of ${events} rows after ${deadlineMs / 1_000} s`)
    if (last.rows !== events) throw new Error(`${last.rows} rows of ${events} events: something was counted twice`)
    const rows = last.rows - first.rows
    const perEventUs = (seconds: number) => (seconds / rows) * 1e6
    return {
      eventsPerSecond: rows / ((last.at - first.at) / 1_000),
      consumerCpuUs: perEventUs(last.consumer - first.consumer),
      clickhouseCpuUs: perEventUs(last.clickhouse - first.clickhouse),
    }
  } finally {
    await consumer.close()
  }
}
