import { randomUUID } from 'node:crypto'
import { readScript } from '../scripts.ts'

/*
 * Promises: every process that shares a Redis knows within a second or two how many they are; one that dies is out of
 * the count after five seconds. While Redis is away the last known number stays, because the others are not gone with
 * it.
 *
 * One sorted set in one slot, also on a Cluster. Nothing here is on a request's path.
 */

/** Shares are cut by this number, and a new process should count soon. */
const beatEveryMs = 1_000
/** Four missed beats: a process that only collects garbage is not gone. */
const silenceMs = 5_000
const keyDefault = 'weir:1:{_processes}'

/** What a heartbeat needs, of one server or of a Cluster. */
export interface HeartbeatRedis {
  eval(source: string, keyCount: number, key: string, ...rest: (string | number)[]): Promise<unknown>
  zrem(key: string, member: string): Promise<unknown>
}

export interface ProcessCountOptions {
  /** Of role `limiter`: it fails at once while Redis is away, so that beats do not pile up. The caller closes it. */
  readonly redis: HeartbeatRedis
  /** Another set of processes, for tests. */
  readonly key?: string
  readonly beatEveryMs?: number
}

export interface ProcessCount {
  /** As last known, this process included: at least 1, and 1 until Redis has answered once. */
  count(): number
  /** Begins to beat; resolves when the first beat was answered or failed. */
  start(): Promise<void>
  /** Takes this process out of the count. Resolves also when Redis is away; the others then notice by the silence. */
  stop(): Promise<void>
  /** Since the start, for metrics. A failed beat changes nothing but this. */
  readonly counters: { readonly beats: number; readonly failures: number }
}

/** Counts the processes that share this Redis, by their heartbeats. */
export function createProcessCount(options: ProcessCountOptions): ProcessCount {
  const { redis, key = keyDefault, beatEveryMs: everyMs = beatEveryMs } = options
  const { source } = readScript('count-processes')
  const id = randomUUID()
  const counters = { beats: 0, failures: 0 }
  let known = 1
  let running = false
  let timer: NodeJS.Timeout | undefined
  let underWay: Promise<void> = Promise.resolve()

  async function beat(): Promise<void> {
    counters.beats += 1
    try {
      known = Math.max(1, Number(await redis.eval(source, 1, key, id, silenceMs)))
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
    count: () => known,
    get counters() {
      return { ...counters }
    },
    start() {
      if (running) return underWay
      running = true
      next()
      return underWay
    },
    async stop() {
      running = false
      clearTimeout(timer)
      await underWay // a beat on its way would put the process back
      try {
        await redis.zrem(key, id)
      } catch {
        counters.failures += 1
      }
    },
  }
}
