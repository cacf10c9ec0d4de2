import { slotCount } from '@weir/redis/key-slot.ts'
import { after } from '../after.ts'
import type { SeededRandom } from '../seeded-random.ts'
import type { ClusterSetup } from '../servers/redis-cluster.ts'
import { failOver } from './fail-over.ts'
import type { Stack } from './stack.ts'

const [faultEveryMs, stoppedMs] = [5_000, 20_000]

/** An ingress is killed, or stopped; a server is killed; a Cluster's master is; an upstream breaks off; or nothing. */
export type Fault = 'kill' | 'stop' | 'redis' | 'kafka' | 'clickhouse' | 'failover' | 'upstream' | 'none'

export interface Struck {
  readonly stack: Stack
  readonly upstream: { cut(): void }
  readonly cluster: ClusterSetup | undefined
}

async function killPart(stack: Stack, name: string): Promise<void> {
  const pid = stack.pid(name)
  stack.signal(name, 'SIGKILL')
  await stack.backAfter(name, pid)
}

/** One fault, which is over when it resolves. */
async function strike({ stack, upstream, cluster }: Struck, what: Fault, random: SeededRandom): Promise<void> {
  const name = random.pick(['ingress', 'ingress-2'])
  if (what === 'kill') await killPart(stack, name)
  if (what === 'redis' || what === 'kafka' || what === 'clickhouse') await killPart(stack, what)
  if (what === 'upstream') upstream.cut()
  if (what === 'failover' && cluster !== undefined) await failOver(cluster, random.integer(0, slotCount - 1))
  if (what === 'stop') {
    stack.signal(name, 'SIGSTOP')
    await after(stoppedMs)
    stack.signal(name, 'SIGCONT')
  }
}

interface Strike {
  readonly what: Fault
  readonly fromMs: number
  readonly toMs: number
}

/** Metering lags behind by a few seconds; a console notices within two, and sums for a moment. */
const [unmeteredMs, raisedMs] = [15_000, 10_000]

/**
 * Tokens that a console may have counted again (docs/decisions/0008): while it raises the counts of a Redis that was
 * started again, it does not know of settlements that are not metered yet.
 */
export const mayBeRaised = (
  all: readonly Strike[],
  givenBack: readonly { readonly atMs: number; readonly tokens: number }[],
): number => {
  const strikes = all.filter(({ what }) => what === 'redis' || what === 'failover')
  const isIn = (atMs: number) =>
    strikes.some(({ fromMs, toMs }) => atMs > fromMs - unmeteredMs && atMs < toMs + raisedMs)
  return givenBack.reduce((sum, { atMs, tokens }) => sum + (isIn(atMs) ? tokens : 0), 0)
}

/** Strikes every 5 s, until the end is near. Returns what was struck. */
export async function strikeUntil(
  endMs: number,
  struck: Struck,
  faults: readonly [Fault, ...Fault[]],
  random: SeededRandom,
): Promise<readonly Strike[]> {
  const all: Strike[] = []
  while (performance.now() < endMs - faultEveryMs) {
    const what = random.pick(faults)
    const fromMs = performance.now()
    await strike(struck, what, random)
    all.push({ what, fromMs, toMs: performance.now() })
    await after(faultEveryMs)
  }
  return all
}
