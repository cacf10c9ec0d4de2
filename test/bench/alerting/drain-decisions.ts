import { readFileSync } from 'node:fs'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { Program } from '../ingress/start-program.ts'
import { processCpuSeconds } from '../process-cpu.ts'

/** How a consumer emptied a full topic. */
export interface DrainedDecisions {
  readonly recordsPerSecond: number
  /** Microseconds a record, of all threads. */
  readonly cpuUs: number
  /** Most memory that the process ever had, in MB. */
  readonly rssMb: number
}

/** Of what is in the topic: before it a process is warming up. */
const warmShare = 0.2
const pollMs = 50
const deadlineMs = 900_000

/** Most that a process has had resident so far. */
const peakRssMb = (pid: number): number =>
  Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024

async function readRecords(port: number): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
  // Not there yet while it starts.
  return Number(/^weir_decisions_watched_total (\d+)$/m.exec(await answer.text())?.[1] ?? 0)
}

/** Waits until a consumer with its ops server at `port` has read `events` decisions. Its first fifth does not count. */
export async function drainDecisions(program: Program, port: number, events: number): Promise<DrainedDecisions> {
  const look = async () => ({
    records: await readRecords(port),
    at: performance.now(),
    cpu: processCpuSeconds(program.pid),
  })
  let first = await look()
  let last = first
  const isDone = async () => {
    last = await look()
    if (first.records < events * warmShare) first = last
    return last.records >= events
  }
  const done = await waitUntil(isDone, { deadlineMs, everyMs: pollMs })
  if (done !== true) throw new Error(`only ${last.records} of ${events} records after ${deadlineMs / 1_000} s`)
  const records = last.records - first.records
  return {
    recordsPerSecond: records / ((last.at - first.at) / 1_000),
    cpuUs: ((last.cpu - first.cpu) / records) * 1e6,
    rssMb: peakRssMb(program.pid),
  }
}
