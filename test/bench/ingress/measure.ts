import { mainThreadCpuSeconds, processCpuSeconds } from '../process-cpu.ts'
import { callers } from './caller.ts'
import type { Contestant } from './contestants.ts'
import { driveGrpcLoad } from './drive-grpc.ts'
import { driveLoad, type Load } from './drive-load.ts'

/** Of the servers that contestants share. */
export interface Pids {
  readonly redis: number
  readonly kafka: number
}

/** One contestant's part of a round. CPU in microseconds per request; 0 where it does not use that server. */
export interface Measured extends Load {
  readonly serverCpuUs: number
  /** Of the server's, what the thread that runs JavaScript used in the process that is asked. */
  readonly mainThreadCpuUs: number
  /** Of the server's, what the process behind the one that is asked used. */
  readonly behindCpuUs: number
  readonly redisCpuUs: number
  readonly kafkaCpuUs: number
}

/** Loads one contestant, waits until it has recorded everything, and tells what all of it cost. */
export async function measure(contestant: Contestant, pids: Pids, seconds: number, rate?: number): Promise<Measured> {
  const { pid, behindPid } = contestant
  const readCpu = () => ({
    asked: processCpuSeconds(pid),
    behind: behindPid === undefined ? 0 : processCpuSeconds(behindPid),
    mainThread: mainThreadCpuSeconds(pid),
    redis: contestant.usesRedis ? processCpuSeconds(pids.redis) : 0,
    kafka: contestant.usesKafka ? processCpuSeconds(pids.kafka) : 0,
  })
  const before = readCpu()
  const { origin, asking } = contestant
  const drive = asking.messageOf === undefined ? driveLoad : driveGrpcLoad
  const load = await drive({ origin, asking, connections: callers, seconds, rate })
  await contestant.settle()
  const after = readCpu()
  const perRequestUs = (name: keyof typeof after) => ((after[name] - before[name]) / load.requests) * 1e6
  return {
    ...load,
    serverCpuUs: perRequestUs('asked') + perRequestUs('behind'),
    behindCpuUs: perRequestUs('behind'),
    mainThreadCpuUs: perRequestUs('mainThread'),
    redisCpuUs: perRequestUs('redis'),
    kafkaCpuUs: perRequestUs('kafka'),
  }
}
