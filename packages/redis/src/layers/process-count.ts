import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from '../cluster-connection.ts'
import { serverFinder } from '../limit-connection.ts'
import { readScript } from '../scripts.ts'

/*
 * Promises: every process that shares a Redis knows within a second or two how many they are; one that dies is out of
 * the count after five seconds. While Redis is down the last known number stays, because the others run on.
 *
 * One sorted set in one slot, also on a Cluster. Nothing here is on a request's path.
 */

/** Shares are cut by this number, and a new process should count soon. */
const beatEveryMs = 1_000
/** Four missed beats: a process that only collects garbage still counts. */
const silenceMs = 5_000
const keyDefault = 'weir:1:{_processes}'

interface ProcessCountOptions {
  /** Of role `limiter`: beats fail while Redis is down, and do not pile up. The caller closes it. */
  readonly redis: Redis | ClusterConnection
  /** Another set of processes, for tests. */
  readonly key?: string
  readonly beatEveryMs?: number
}

/** Counts the processes, see `createProcessCount`. */
export type ProcessCount = ReturnType<typeof createProcessCount>

/** Returns what counts the processes that share this Redis, by their heartbeats. */
export function createProcessCount(options: ProcessCountOptions) {
  const { redis, key = keyDefault, beatEveryMs: everyMs = beatEveryMs } = options
  const { source } = readScript('count-processes')
  const serverOf = serverFinder(redis)
  const id = randomUUID()
  const counters = { beats: 0, failures: 0 }
  let known = 1
  let running = false
  let timer: NodeJS.Timeout | undefined
  let underWay: Promise<void> = Promise.resolve()

  async function beat(): Promise<void> {
    counters.beats += 1
    try {
      known = Math.max(1, Number(await serverOf(key).eval(source, 1, key, id, silenceMs)))
    } catch {
      counters.failures += 1
    }
    if (running) timer = setTimeout(next, everyMs)
  }
  /** One beat at a time: the next waits until this one was answered or given up. */
  function next(): void {
    underWay = beat()
  }

  return {
    /** As last known, this process included: at least 1, and 1 until Redis has answered once. */
    count: () => known,
    /** Counts since the start, for metrics. A failed beat changes nothing but these. */
    get counters() {
      return { ...counters }
    },
    /** Begins to beat; resolves when the first beat was answered or failed. */
    start() {
      if (running) return underWay
      running = true
      next()
      return underWay
    },
    /** Removes this process from the count. Resolves also when Redis is down; the others then notice by the silence. */
    async stop() {
      running = false
      clearTimeout(timer)
      await underWay // a beat on its way would put the process back
      try {
        await serverOf(key).zrem(key, id)
      } catch {
        counters.failures += 1
      }
    },
  }
}
