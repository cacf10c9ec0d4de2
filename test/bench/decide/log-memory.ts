import type { Redis } from 'ioredis'
import type { Contestant } from './contestant.ts'
import { openSortedSet } from './recipes.ts'
import { chargeAll, limitsOf, openStore } from './weir.ts'

/** What is asked after: 10 million admissions. */
const subjectsAll = 10_000
const admissions = 1_000
/** What is filled, so that it takes seconds; the rest would take exactly as much again and again. */
const subjectsFilled = 500
/** The most that a call of decide.lua takes. */
const together = 32

export interface LogMemory {
  /** Bytes for all subjects, scaled up from those that were filled. */
  readonly totalBytes: number
  readonly bytesPerAdmission: number
  /** Redis's processor time, while logs grew from nothing to full. */
  readonly redisCpuUsPerAdmission: number
}

export const logMemoryTitle = `${subjectsAll.toLocaleString('en-US')} subjects × ${admissions.toLocaleString('en-US')} admissions, from ${subjectsFilled} of them`

/** Without what connections and the append-only file happen to hold at the moment. */
async function readRedis(redis: Redis): Promise<{ bytes: number; cpuUs: number }> {
  const info = String(await redis.call('INFO', 'memory', 'cpu'))
  const field = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? Number.NaN)
  return {
    bytes: field('used_memory') - field('mem_clients_normal') - field('mem_aof_buffer'),
    cpuUs: (field('used_cpu_user') + field('used_cpu_sys')) * 1e6,
  }
}

/** Admits one by one through the limiter itself, because how a value grew decides how much room it keeps. */
async function fill(redis: Redis, decide: Contestant['decide']): Promise<LogMemory> {
  const names = Array.from({ length: subjectsFilled }, (_, index) => `logged-${String(index).padStart(6, '0')}`)
  const before = await readRedis(redis)
  for (let round = 0; round < admissions; round++) {
    for (let at = 0; at < names.length; at += together) await decide(names.slice(at, at + together))
  }
  const after = await readRedis(redis)
  const filled = subjectsFilled * admissions
  return {
    totalBytes: (after.bytes - before.bytes) * (subjectsAll / subjectsFilled),
    bytesPerAdmission: (after.bytes - before.bytes) / filled,
    redisCpuUsPerAdmission: (after.cpuUs - before.cpuUs) / filled,
  }
}

/** Weir's exact log and the usual sorted set with the same admissions, one after the other on one server. */
export async function measureLogMemory(
  redis: Redis,
): Promise<{ readonly ring: LogMemory; readonly sortedSet: LogMemory }> {
  const limits = limitsOf('sliding_log', 1, 'memory').map((limit) => ({
    ...limit,
    size: admissions,
    capacity: admissions,
  }))
  const ring = await fill(redis, chargeAll('sliding_log', openStore(redis), limits))
  const [recipe] = await openSortedSet(redis, 'memory', admissions)
  if (recipe === undefined) throw new Error('the sorted set has no contestant')
  return { ring, sortedSet: await fill(redis, recipe.decide) }
}
