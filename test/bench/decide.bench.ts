import { redisServer } from '@weir/local-redis/redis-server.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { Redis } from 'ioredis'
import { createSeededRandom } from '../support/seeded-random.ts'
import { startServer } from '../support/servers/start-server.ts'
import { type Contestant, subjects, togetherMax } from './decide/contestant.ts'
import { holdContestants } from './decide/holds.ts'
import { libraryContestants } from './decide/libraries.ts'
import { bytesPerSubject, type Cost, measure, warmUp } from './decide/measure.ts'
import { recipeContestants } from './decide/recipes.ts'
import { type Round, targetRatios, targetRows } from './decide/targets.ts'
import { weirContestants } from './decide/weir.ts'
import { type BenchOptions, type BenchReport, type BenchTable, spread } from './report.ts'

/** Long enough for a thousand decisions one by one, short enough that a round stays within seconds. */
const msPerRun = 200
const warmUpMs = 300

/** What the loop that asks costs by itself; part of everybody's Node CPU. */
const loopAlone: Contestant = {
  label: 'nothing: the loop that asks',
  together: togetherMax,
  limits: 0,
  keys: undefined,
  decide: async () => {},
}

type Connections = ReturnType<typeof openConnections>

function openConnections(url: string) {
  const opened: Redis[] = []
  const ready = async (redis: Redis) => {
    opened.push(redis)
    if (redis.status !== 'ready') await new Promise((resolve) => redis.once('ready', resolve))
    return redis
  }
  return {
    /** A new connection as the ingress has it. */
    limiter: () => ready(connectRedis(url, { role: 'limiter', onError: () => {} })),
    /** A new connection as a library's documentation opens it. */
    plain: (options?: { readonly enableAutoPipelining: boolean }) => ready(new Redis(url, { ...options })),
    close() {
      for (const redis of opened) redis.disconnect()
    },
  }
}

async function openContestants({ limiter, plain }: Connections): Promise<Contestant[]> {
  return [
    loopAlone,
    ...weirContestants(await limiter()),
    ...holdContestants(await limiter()),
    ...(await recipeContestants(await plain())),
    ...libraryContestants(await plain(), await plain({ enableAutoPipelining: true })),
  ]
}

const random = createSeededRandom()

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, place: random.integer(0, 2 ** 30) }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)
}

type Seen = ReadonlyMap<Contestant, Cost>

async function playRound(contestants: readonly Contestant[], monitor: Redis): Promise<Seen> {
  const seen = new Map<Contestant, Cost>()
  for (const contestant of shuffled(contestants)) seen.set(contestant, await measure(contestant, monitor, msPerRun))
  return seen
}

function costOf(seen: Seen): Round {
  return (label, together) => {
    for (const [contestant, cost] of seen) {
      if (contestant.label === label && contestant.together === together) return cost
    }
    throw new Error(`${label} was not measured`)
  }
}

const columns: readonly { readonly title: string; readonly value: (cost: Cost) => number }[] = [
  { title: 'decisions/s', value: (cost) => cost.decisionsPerSecond },
  { title: 'Redis CPU µs', value: (cost) => cost.redisCpuUs },
  { title: 'script µs', value: (cost) => cost.scriptUs },
  { title: 'Node CPU µs', value: (cost) => cost.nodeCpuUs },
  { title: 'request bytes', value: (cost) => cost.requestBytes },
  { title: 'reply bytes', value: (cost) => cost.replyBytes },
]

function costTable(
  contestants: readonly Contestant[],
  rounds: readonly Seen[],
  bytes: ReadonlyMap<string, number>,
): BenchTable {
  const overRounds = (contestant: Contestant, value: (cost: Cost) => number) =>
    spread(rounds.flatMap((seen) => [...seen].flatMap(([one, cost]) => (one === contestant ? [value(cost)] : []))))
  const rowOf = (contestant: Contestant) => {
    const held = bytes.get(contestant.label)
    return {
      label: contestant.label,
      values: [
        ...columns.map(({ value }) => overRounds(contestant, value)),
        held === undefined ? undefined : spread([held]),
      ],
    }
  }
  const together = contestants[0]?.together ?? 1
  return {
    title: together === 1 ? 'one by one' : `${together} at once`,
    columns: [...columns.map(({ title }) => title), 'bytes/subject'],
    rows: contestants.map(rowOf),
  }
}

async function playAll(connections: Connections, { rounds, progress }: BenchOptions): Promise<BenchReport> {
  const monitor = await connections.plain()
  // A rewrite of the append-only file copies pages, and would be counted to the contestant that runs at that moment.
  await monitor.config('SET', 'auto-aof-rewrite-percentage', '0')
  const contestants = await openContestants(connections)
  progress(`warming up ${contestants.length} contestants`)
  for (const contestant of contestants) await warmUp(contestant, warmUpMs)
  const seen: Seen[] = []
  for (let round = 1; round <= rounds; round++) {
    seen.push(await playRound(contestants, monitor))
    progress(`round ${round} of ${rounds}`)
  }
  const bytes = new Map<string, number>()
  for (const { label, keys } of contestants) {
    if (keys !== undefined && !bytes.has(label)) bytes.set(label, await bytesPerSubject(monitor, keys))
  }
  const byWay = Object.values(Object.groupBy(contestants, ({ together }) => together))
  const costs = seen.map(costOf)
  return {
    name: `decide: one Redis, ${subjects.length.toLocaleString('en-US')} subjects in turn, ${msPerRun} ms each in shuffled order; per decision, median [min max]`,
    tables: byWay.map((some) => costTable(some ?? [], seen, bytes)),
    rows: targetRows(costs),
    ratios: targetRatios(costs),
  }
}

/** What a decision costs Redis and Node, for each algorithm and beside the recipes and libraries that others use. */
export async function run(options: BenchOptions): Promise<BenchReport> {
  options.progress('starting Redis')
  const server = await startServer(redisServer)
  const connections = openConnections(server.address)
  try {
    return await playAll(connections, options)
  } finally {
    connections.close()
    await server.close()
  }
}
