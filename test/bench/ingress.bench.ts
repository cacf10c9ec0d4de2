import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTopics } from '@weir/cli/commands/topics.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { startServer } from '../support/servers/start-server.ts'
import { bodyOf, callers, headers } from './ingress/caller.ts'
import { type Contestant, type Contestants, startContestants } from './ingress/contestants.ts'
import { driveLoad, type Load } from './ingress/drive-load.ts'
import { mainThreadCpuSeconds, processCpuSeconds } from './process-cpu.ts'
import { type BenchOptions, type BenchReport, type BenchRow, spread } from './report.ts'

/** Until about 30,000 requests the engine's compiler, on threads of its own, costs more than what is measured. */
const warmUpSeconds = 6
/** A tick of the kernel's CPU clock is then less than a percent of what a busy process uses. */
const secondsPerRound = 1.5

interface Pids {
  readonly redis: number
  readonly kafka: number
}

/** One contestant's part of a round. CPU in microseconds per request; 0 where it does not use that server. */
interface Measured extends Load {
  readonly serverCpuUs: number
  /** Of the server's, what the thread that runs JavaScript used. */
  readonly mainThreadCpuUs: number
  readonly redisCpuUs: number
  readonly kafkaCpuUs: number
}

async function measure(contestant: Contestant, pids: Pids, seconds: number): Promise<Measured> {
  const readCpu = () => ({
    server: processCpuSeconds(contestant.pid),
    mainThread: mainThreadCpuSeconds(contestant.pid),
    redis: contestant.usesRedis ? processCpuSeconds(pids.redis) : 0,
    kafka: contestant.usesKafka ? processCpuSeconds(pids.kafka) : 0,
  })
  const before = readCpu()
  const load = await driveLoad({ url: contestant.url, connections: callers, seconds, headers, bodyOf })
  await contestant.settle()
  const after = readCpu()
  const perRequestUs = (name: keyof typeof after) => ((after[name] - before[name]) / load.requests) * 1e6
  return {
    ...load,
    serverCpuUs: perRequestUs('server'),
    mainThreadCpuUs: perRequestUs('mainThread'),
    redisCpuUs: perRequestUs('redis'),
    kafkaCpuUs: perRequestUs('kafka'),
  }
}

type Name = keyof Contestants
type Round = Readonly<Record<Name, Measured>>

async function playRound(contestants: Contestants, round: number, pids: Pids): Promise<Round> {
  const names: Name[] = ['bare', 'oneScript', 'rateLimit', 'weir', 'unrecorded']
  // Who follows whom changes, so that what one leaves behind does not always burden the same other.
  const order = names.map((_, index) => names[(index + round) % names.length] ?? 'bare')
  const measured = new Map<Name, Measured>()
  for (const name of order) measured.set(name, await measure(contestants[name], pids, secondsPerRound))
  const of = (name: Name) => {
    const found = measured.get(name)
    if (found === undefined) throw new Error(`${name} was not measured`)
    return found
  }
  return {
    bare: of('bare'),
    oneScript: of('oneScript'),
    rateLimit: of('rateLimit'),
    weir: of('weir'),
    unrecorded: of('unrecorded'),
  }
}

function rowsOf(contestant: Contestant, seen: readonly Measured[]): BenchRow[] {
  const row = (what: string, unit: string, value: (one: Measured) => number): BenchRow => ({
    label: `${contestant.label}: ${what}`,
    unit,
    ...spread(seen.map(value)),
  })
  const cpu = (what: string, value: (one: Measured) => number) => row(`CPU, ${what}`, 'µs/request', value)
  return [
    row('throughput', 'requests/s', (one) => one.requestsPerSecond),
    row('latency p50', 'ms', (one) => one.p50Ms),
    row('latency p99', 'ms', (one) => one.p99Ms),
    cpu('server', (one) => one.serverCpuUs),
    cpu('main thread of it', (one) => one.mainThreadCpuUs),
    ...(contestant.usesRedis ? [cpu('redis', (one) => one.redisCpuUs)] : []),
    ...(contestant.usesKafka ? [cpu('kafka', (one) => one.kafkaCpuUs)] : []),
    row('load generator', 'cores', (one) => one.generatorCores),
  ]
}

const allCpuUs = (one: Measured) => one.serverCpuUs + one.redisCpuUs + one.kafkaCpuUs

function reportOf(contestants: Contestants, rounds: readonly Round[], unavailable: number): BenchReport {
  const over = (value: (round: Round) => number) => spread(rounds.map(value))
  const ratio = (label: string, value: (round: Round) => number) => ({ label, ...over(value) })
  const names: Name[] = ['bare', 'oneScript', 'rateLimit', 'weir', 'unrecorded']
  return {
    name: `ingress: POST /v1/check from ${callers} connections, ${secondsPerRound} s each in turn`,
    rows: [
      ...names.flatMap((name) =>
        rowsOf(
          contestants[name],
          rounds.map((round) => round[name]),
        ),
      ),
      {
        label: 'd − a: CPU of the main thread (aim ≤ 15)',
        unit: 'µs/request',
        ...over((round) => round.weir.mainThreadCpuUs - round.bare.mainThreadCpuUs),
      },
      {
        label: 'd − e: CPU of the main thread, for recording',
        unit: 'µs/request',
        ...over((round) => round.weir.mainThreadCpuUs - round.unrecorded.mainThreadCpuUs),
      },
      { label: 'd: decisions made without Redis', unit: 'in all', ...spread([unavailable]) },
    ],
    ratios: [
      ratio('throughput d / c', ({ weir, rateLimit }) => weir.requestsPerSecond / rateLimit.requestsPerSecond),
      ratio('throughput d / a', ({ weir, bare }) => weir.requestsPerSecond / bare.requestsPerSecond),
      ratio(
        'throughput e / c',
        ({ unrecorded, rateLimit }) => unrecorded.requestsPerSecond / rateLimit.requestsPerSecond,
      ),
      ratio('throughput c / a', ({ rateLimit, bare }) => rateLimit.requestsPerSecond / bare.requestsPerSecond),
      ratio('server CPU d / c', ({ weir, rateLimit }) => weir.serverCpuUs / rateLimit.serverCpuUs),
      ratio('server CPU e / c', ({ unrecorded, rateLimit }) => unrecorded.serverCpuUs / rateLimit.serverCpuUs),
      ratio('redis CPU d / c', ({ weir, rateLimit }) => weir.redisCpuUs / rateLimit.redisCpuUs),
      ratio('all CPU d / c', ({ weir, rateLimit }) => allCpuUs(weir) / allCpuUs(rateLimit)),
    ],
  }
}

/** What a check through Weir costs beside servers that limit less or nothing, all on one Redis, round by round in turn. */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const opened: { close(): Promise<void> }[] = []
  const dir = await mkdtemp(join(tmpdir(), 'weir-bench-ingress-'))
  try {
    progress('starting Redis, Kafka and five servers')
    const redis = await startServer(redisServer)
    opened.push(redis)
    const kafka = await startServer(kafkaServer)
    opened.push(kafka)
    await createTopics(kafka.address, () => {})
    const servers = { redis: redis.address, kafka: kafka.address }
    const contestants = await startContestants(servers, dir, (one) => opened.push(one))
    const pids = { redis: redis.pid(), kafka: kafka.pid() }
    for (const contestant of Object.values(contestants)) {
      progress(`warming up ${contestant.label}`)
      await measure(contestant, pids, warmUpSeconds)
    }
    const before = await contestants.weir.countUnavailable()
    const seen: Round[] = []
    for (let round = 1; round <= rounds; round += 1) {
      seen.push(await playRound(contestants, round, pids))
      progress(`round ${round} of ${rounds}`)
    }
    return reportOf(contestants, seen, (await contestants.weir.countUnavailable()) - before)
  } finally {
    for (const one of opened.reverse()) await one.close()
    await rm(dir, { recursive: true, force: true })
  }
}
