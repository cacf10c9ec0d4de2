import { availableParallelism } from 'node:os'
import { machineCpuSeconds, processCpuSeconds } from '../process-cpu.ts'
import type { Contestants, Name } from './contestants.ts'
import { type Measured, measure, type Pids } from './measure.ts'

/** What contestants cost in one round; those are missing whose group other programs disturbed. */
export type Round = ReadonlyMap<Name, Measured>

/** One group's part of a round. */
export interface Turn {
  readonly measured: Round
  /** The most of the machine, from 0 to 1, that other programs or its host took during one of its slices. */
  readonly othersShare: number
}

/**
 * A ratio is only ever made within a group. Each group is played forth and back, so that a machine that becomes slower
 * or faster does the same to all of it.
 */
export const groups: readonly (readonly Name[])[] = [
  [
    'bare',
    'oneScript',
    'rateLimit',
    'check',
    'checkCoalesced',
    'unrecorded',
    'authorize',
    'authorizeCoalesced',
    'client',
  ],
  ['union', 'checkThree', 'threeCoalesced'],
  ['reference', 'grpc', 'grpcCoalesced'],
  ['httpProxy', 'limitedProxy', 'proxy', 'proxyCoalesced', 'proxyUnrecorded'],
]

/** A busy process uses some 300 ticks of the kernel's CPU clock in both slices: one tick is below half a percent. */
export const secondsPerSlice = 1.5
/**
 * The rule by which turns are left out, fixed before anything is measured: a fifth of a core of two is what a desktop
 * or a system's timers take; beyond it a contestant waits for the processor, and its caches are cold.
 */
export const othersShareMax = 0.1

/** Of both slices of one contestant. */
function join(a: Measured, b: Measured): Measured {
  const requests = a.requests + b.requests
  const mean = (of: (one: Measured) => number) => (of(a) + of(b)) / 2
  const each = (of: (one: Measured) => number) => (of(a) * a.requests + of(b) * b.requests) / requests
  return {
    requests,
    requestsPerSecond: mean((one) => one.requestsPerSecond),
    p50Ms: mean((one) => one.p50Ms),
    p99Ms: mean((one) => one.p99Ms),
    generatorCores: mean((one) => one.generatorCores),
    serverCpuUs: each((one) => one.serverCpuUs),
    behindCpuUs: each((one) => one.behindCpuUs),
    mainThreadCpuUs: each((one) => one.mainThreadCpuUs),
    redisCpuUs: each((one) => one.redisCpuUs),
    kafkaCpuUs: each((one) => one.kafkaCpuUs),
  }
}

/** CPU of the machine that none of these processes, nor this one, has used so far. */
function othersCpuSeconds(own: readonly number[]): number {
  const { user, system } = process.cpuUsage()
  return machineCpuSeconds() - (user + system) / 1e6 - own.reduce((sum, pid) => sum + processCpuSeconds(pid), 0)
}

/** Plays one group; `own` are all processes of the bench. Which of the group begins changes from round to round. */
export async function playTurn(
  group: readonly Name[],
  round: number,
  contestants: Contestants,
  pids: Pids,
  own: readonly number[],
): Promise<Turn> {
  const first = round % group.length
  const forth = [...group.slice(first), ...group.slice(0, first)]
  const measured = new Map<Name, Measured>()
  let othersShare = 0
  for (const name of [...forth, ...forth.toReversed()]) {
    const contestant = contestants.get(name)
    if (contestant === undefined) throw new Error(`${name} was not started`)
    const [cpu, startedAt] = [othersCpuSeconds(own), performance.now()]
    const slice = await measure(contestant, pids, secondsPerSlice)
    const coreSeconds = ((performance.now() - startedAt) / 1_000) * availableParallelism()
    othersShare = Math.max(othersShare, (othersCpuSeconds(own) - cpu) / coreSeconds)
    const earlier = measured.get(name)
    measured.set(name, earlier === undefined ? slice : join(earlier, slice))
  }
  return { measured, othersShare }
}

/** Turns of one group that count: the undisturbed ones, or all where none would be left. */
export function undisturbed(turns: readonly Turn[]): readonly Turn[] {
  const quiet = turns.filter(({ othersShare }) => othersShare <= othersShareMax)
  return quiet.length === 0 ? turns : quiet
}
