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

/** Strikes every 5 s, until the end is near. Returns what was struck. */
export async function strikeUntil(
  endMs: number,
  struck: Struck,
  faults: readonly [Fault, ...Fault[]],
  random: SeededRandom,
): Promise<readonly Fault[]> {
  const all: Fault[] = []
  while (performance.now() < endMs - faultEveryMs) {
    const what = random.pick(faults)
    all.push(what)
    await strike(struck, what, random)
    await after(faultEveryMs)
  }
  return all
}
