import { expect, it } from 'vitest'
import { after } from '../support/after.ts'
import { startCountingThread } from '../support/counting-upstream-thread.ts'
import { beyondBooks, untilFree } from '../support/failure/exchange-books.ts'
import { SubjectExchanges } from '../support/failure/exchanges.ts'
import { exchangesPolicy, holdMs, planOf, slotsMax, type Tokens } from '../support/failure/exchanges-policy.ts'
import { type Fault, mayBeRaised, strikeUntil } from '../support/failure/faults.ts'
import { GatewayExchanges, openGateway } from '../support/failure/gateway-exchanges.ts'
import { weirAudit } from '../support/failure/hand-damage.ts'
import { startStack } from '../support/failure/stack.ts'
import { openStackRedis } from '../support/failure/stack-redis.ts'
import { untilRestored } from '../support/failure/until-restored.ts'
import { createSeededRandom, type SeededRandom } from '../support/seeded-random.ts'
import { type ClusterSetup, startCluster } from '../support/servers/redis-cluster.ts'

/** A minute of faults in the tier; `WEIR_TEST_MINUTES=10` for longer. */
const minutes = Number(process.env.WEIR_TEST_MINUTES ?? '1')
const testMs = 3_600_000

interface Play {
  readonly ms: number
  readonly subjects: number
  /** Exchanges at a time. */
  readonly workers: number
  readonly longestMs: number
  readonly tokens: Tokens
  readonly faults: readonly [Fault, ...Fault[]]
  readonly cluster?: ClusterSetup
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0)

interface Exchanged {
  readonly all: readonly SubjectExchanges[]
  readonly gateways: readonly GatewayExchanges[]
}

/** A third of the exchanges are of gateways. */
async function exchangeUntil(endMs: number, { all, gateways }: Exchanged, workers: number, random: SeededRandom) {
  const work = async () => {
    while (performance.now() < endMs) {
      const one = random.oneIn(3) ? gateways[random.integer(0, gateways.length - 1)] : undefined
      await (one ?? all[random.integer(0, all.length - 1)])?.exchange(random)
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
}

/** What was exchanged, in words. Expects that never more was in flight, or charged, than there is. */
function expectNeverAbove({ all, gateways }: Exchanged, most: ReadonlyMap<string, number>, mayForget: boolean): string {
  const slots = [...all, ...gateways].map(({ subject }) => most.get(subject) ?? 0)
  const over = [...most].filter(([, n]) => n > slotsMax)
  const above = all.filter(({ mostCharged, size }) => mostCharged > size).map(({ subject }) => subject)
  const full = slots.filter((n) => n >= slotsMax).length
  const checks = all.map(({ counts }) => counts)
  const calls = gateways.map(({ counts }) => counts)
  const counts = {
    proxied: sum(checks.map(({ proxied }) => proxied)),
    checked: sum(checks.map(({ checked }) => checked)),
    'over gRPC': sum(calls.map(({ passed }) => passed)),
    'refused for slots': sum([...checks, ...calls].map(({ refused }) => refused)),
    'refused for tokens': sum(checks.map(({ short }) => short)),
    lost: sum([...checks, ...calls].map(({ lost }) => lost)),
  }
  const text = Object.entries(counts).map(([name, n]) => `${n} ${name}`)
  text.push(`at most ${Math.max(...slots)} of ${slotsMax} in flight, ${full} times full`)
  text.push(`${above.length} subjects with more tokens than there are`)
  if (!mayForget) expect({ most: Math.max(...slots), over, above }).toEqual({ most: slotsMax, over: [], above: [] })
  return text.join(', ')
}

async function playAndCount({ subjects, workers, tokens, faults, cluster, ...play }: Play): Promise<void> {
  const random = createSeededRandom()
  const names = Array.from({ length: subjects }, (_, at) => `exchanges-${at}`)
  const upstream = await startCountingThread()
  const environment: Readonly<Record<string, string>> =
    cluster === undefined ? {} : { WEIR_REDIS_URL: cluster.urlOfAll }
  const policy = exchangesPolicy(names, upstream.url, tokens)
  const stack = await startStack({ policy, ingress: 2, oneOfEach: true, environment })
  const redis = openStackRedis(stack)
  const gateway = await openGateway(`127.0.0.1:${stack.ports.grpc}`)
  try {
    await untilRestored(stack)
    const [api, ingress] = [stack.ports.api, stack.ports.ingress].map((port) => `http://127.0.0.1:${port}`)
    const doors = { api: api ?? '', ingress: ingress ?? '', upstream: upstream.url, longestMs: play.longestMs }
    const all = names.map((name, at) => new SubjectExchanges(name, tokens[planOf(at)], doors))
    const gateways = names.map((name) => new GatewayExchanges(name, gateway, doors))
    const endMs = performance.now() + play.ms
    const [struck] = await Promise.all([
      strikeUntil(endMs, { stack, upstream, cluster }, faults, random),
      exchangeUntil(endMs, { all, gateways }, workers, random),
    ])
    const tell = (text: string) => process.stdout.write(`  seed ${random.seed}: ${text}\n`)
    const faultsMade = struck.map(({ what }) => what)
    tell(`struck: ${faultsMade.join(' ')}`)
    // A Redis that is killed may forget a second of what it answered; slots are there again within 10 s.
    const mayForget = faultsMade.includes('redis') || faultsMade.includes('failover')
    tell(expectNeverAbove({ all, gateways }, await upstream.most(), mayForget))
    const free = await untilFree(redis, names)
    tell(`${free.slots} slots at the end, all free after ${free.ms} ms`)
    for (const one of all) await one.repeatUnanswered()
    await after(holdMs + 4_000)
    tell(await beyondBooks(stack, all, ({ givenBack }) => mayBeRaised(struck, givenBack)))
    for (const one of all) {
      const { remaining } = await one.peek()
      const rest = await one.ask('/v1/check', { units: { tokens: remaining } })
      expect([one.subject, rest?.allowed]).toEqual([one.subject, true])
      expect((await one.peek(1)).allowed).toBe(false)
    }
    expect((await weirAudit(stack)).findings).toEqual([])
  } finally {
    gateway.close()
    redis.disconnect()
    await stack.close()
    await upstream.close()
  }
}

const few = {
  ms: minutes * 60_000,
  subjects: 40,
  workers: 120,
  longestMs: 800,
  tokens: { many: 1_000_000, few: 2_000 * minutes },
}

it.each(['none', 'kill'] as const)(
  'a thousand exchanges at a time over proxy, check and gRPC in two processes, fault %s: never more in flight than slots, nor more held than there is',
  (fault) =>
    playAndCount({
      ms: 45_000,
      subjects: 200,
      workers: 1_000,
      longestMs: 3_000,
      tokens: { many: 1_000_000, few: 1_000 },
      faults: [fault],
    }),
  testMs,
)

it(
  'whatever is killed, stopped or breaks off: no more in flight than slots, every slot comes back, and counts and books agree to the unit',
  () => playAndCount({ ...few, faults: ['kill', 'kill', 'stop', 'redis', 'kafka', 'clickhouse', 'upstream'] }),
  testMs,
)

it(
  'the same on a Redis Cluster whose masters fail over',
  async () => {
    const cluster = await startCluster({ replicas: 1 })
    try {
      await playAndCount({ ...few, faults: ['kill', 'kill', 'stop', 'failover', 'upstream'], cluster })
    } finally {
      await cluster.close()
    }
  },
  testMs,
)
