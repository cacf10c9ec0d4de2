import type { Redis } from 'ioredis'
import { type Contestant, subjects, type Together, togetherMax } from './contestant.ts'

/** What a decision costs; of a run of one contestant. */
export type Cost = Awaited<ReturnType<typeof measure>>

const fieldOf = (info: string, name: string): number =>
  Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? Number.NaN)

const scriptUsOf = (commandStats: string): number =>
  ['eval', 'evalsha']
    .map((name) => Number(new RegExp(`^cmdstat_${name}:calls=\\d+,usec=(\\d+)`, 'm').exec(commandStats)?.[1] ?? 0))
    .reduce((sum, us) => sum + us)

/** All in one reply: the reading costs once, and less than one decision of a run. */
async function readRedis(monitor: Redis) {
  const info = await monitor.call('INFO', 'cpu', 'commandstats', 'stats')
  const text = String(info)
  return {
    cpuUs: (fieldOf(text, 'used_cpu_user') + fieldOf(text, 'used_cpu_sys')) * 1e6,
    scriptUs: scriptUsOf(text),
    inBytes: fieldOf(text, 'total_net_input_bytes'),
    outBytes: fieldOf(text, 'total_net_output_bytes'),
  }
}

const groupsOf = (size: number): (readonly string[])[] =>
  Array.from({ length: subjects.length / size }, (_, index) => subjects.slice(index * size, (index + 1) * size))
const groups: Readonly<Record<Together, readonly (readonly string[])[]>> = {
  1: groupsOf(1),
  [togetherMax]: groupsOf(togetherMax),
}

/**
 * Decides for one group of subjects after the other, at least `ms` long and at least `decisionsMin` often. Two groups
 * of many are under way at any time, as on a busy server: while one is decided, the next is asked for.
 */
async function ask(contestant: Contestant, ms: number, decisionsMin: number): Promise<number> {
  const own = groups[contestant.together]
  const until = performance.now() + ms
  let decisions = 0
  let at = 0
  const askOn = async () => {
    while (performance.now() < until || decisions < decisionsMin) {
      const group = own[at] ?? []
      at = (at + 1) % own.length
      await contestant.decide(group)
      decisions += group.length
    }
  }
  await Promise.all(contestant.together === 1 ? [askOn()] : [askOn(), askOn()])
  return decisions
}

/** Each subject at least once, and long enough that the compiler is done with what this contestant alone runs. */
export const warmUp = (contestant: Contestant, ms: number): Promise<number> => ask(contestant, ms, subjects.length)

/** `monitor` is a connection that only this reads by. */
export async function measure(contestant: Contestant, monitor: Redis, ms: number) {
  const redisBefore = await readRedis(monitor)
  const nodeBefore = process.cpuUsage()
  const startedAt = performance.now()
  const decisions = await ask(contestant, ms, 1)
  const seconds = (performance.now() - startedAt) / 1_000
  const node = process.cpuUsage(nodeBefore)
  const redis = await readRedis(monitor)
  return {
    decisionsPerSecond: decisions / seconds,
    /** All of Redis's processor time: the script, the protocol, the socket, the append-only file. */
    redisCpuUs: (redis.cpuUs - redisBefore.cpuUs) / decisions,
    /** Of it what Redis counts to EVALSHA and EVAL. */
    scriptUs: (redis.scriptUs - redisBefore.scriptUs) / decisions,
    /** This process's, the loop that asks included. */
    nodeCpuUs: (node.user + node.system) / decisions,
    requestBytes: (redis.inBytes - redisBefore.inBytes) / decisions,
    replyBytes: (redis.outBytes - redisBefore.outBytes) / decisions,
  }
}

/** Keys that one reading of SCAN asks for. */
const scanCount = 5_000

/** What a subject's keys take, averaged over all subjects, by Redis's own count of key and value. */
export async function bytesPerSubject(redis: Redis, pattern: string): Promise<number> {
  let bytes = 0
  let cursor = '0'
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', scanCount)
    const pipeline = redis.pipeline()
    for (const key of keys) pipeline.memory('USAGE', key)
    for (const [, usage] of (await pipeline.exec()) ?? []) bytes += Number(usage)
    cursor = next
  } while (cursor !== '0')
  return bytes / subjects.length
}
