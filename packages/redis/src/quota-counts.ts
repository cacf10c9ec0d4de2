import type { KnownUnits, QuotaCount, QuotaFloor, SummableQuota } from '@weir/core/audit/quota.ts'
import { floorOutcomes } from '@weir/core/limits/script-protocol.ts'
import type { Redis } from 'ioredis'
import { keySlot } from './key-slot.ts'
import { hashOfKeyPart, limitKey } from './keys.ts'
import { scanKeys } from './scan-keys.ts'
import { readScript, scriptTime } from './scripts.ts'

const { source, sha1 } = readScript('raise-to-floor')

/** One run of the script takes a fraction of a millisecond with so many; also checked there. */
const keysPerCallMax = 100

const outcomes: Readonly<Record<number, QuotaCount['outcome']>> = {
  [floorOutcomes.LEFT]: 'left',
  [floorOutcomes.RAISED]: 'raised',
  [floorOutcomes.LOWERED]: 'lowered',
  [floorOutcomes.OTHER_PERIOD]: 'other',
  [floorOutcomes.PERIOD_OVER]: 'over',
}

/** Where commands go: always the one server, except on a Cluster. */
export interface QuotaServers {
  serverOf(key: string): Redis
  all(): readonly Redis[]
}

/** What is known of counts from earlier, by key. */
export interface EarlierCounts {
  /** Earlier floors: a count that is just that was raised to it, and follows a floor that is lower by now. */
  readonly before?: ReadonlyMap<string, number> | undefined
  /** What counts were at an earlier look, 0 if not in here: a count that is another by now is left as it is. */
  readonly seen?: ReadonlyMap<string, number> | undefined
}

/** Groups floors with their positions by call: calls of one slot each where there are several servers. */
function callsFor(floors: readonly QuotaFloor[], servers: QuotaServers): [at: number, floor: QuotaFloor][][] {
  const isCluster = servers.all().length > 1
  const groups = Map.groupBy(floors.entries(), ([, { key }]) => (isCluster ? keySlot(key) : 0))
  return [...groups.values()].flatMap((group) =>
    Array.from({ length: Math.ceil(group.length / keysPerCallMax) }, (_, call) =>
      group.slice(call * keysPerCallMax, (call + 1) * keysPerCallMax),
    ),
  )
}

async function run(server: Redis, keys: readonly string[], argv: readonly string[]): Promise<unknown> {
  try {
    return await server.evalsha(sha1, keys.length, ...keys, ...argv)
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return await server.eval(source, keys.length, ...keys, ...argv)
  }
}

function readCounts(reply: unknown, count: number): QuotaCount[] {
  const numbers = Array.isArray(reply) ? reply.map(Number) : []
  if (numbers.length !== count * 4)
    throw new Error(`raise-to-floor.lua replied with ${numbers.length} numbers for ${count} keys`)
  return Array.from({ length: count }, (_, at) => {
    const [code = 0, before = 0, endMs = 0, now = 0] = numbers.slice(at * 4, at * 4 + 4)
    return { outcome: outcomes[code] ?? 'left', before, endMs, now }
  })
}

/** Name of the limit whose count has this key; empty for blocks and keys of anything else. See keys.ts. */
function limitNameOf(key: string): string {
  const [, name = '', rest = ''] = /^weir:1:\{[^}]*\}:([^:]*)(.*)$/.exec(key) ?? []
  return rest.endsWith(':blocked') ? '' : decodeURIComponent(name)
}

/**
 * Returns what compares or restores the counts of calendar quotas: slow, and never part of a decision. `nowMs` is a
 * test's time; else Redis's own clock counts.
 */
export function createQuotaCounts(servers: QuotaServers, nowMs?: () => number) {
  const ask = async (
    floors: readonly QuotaFloor[],
    floorOf: (floor: QuotaFloor) => number,
    { before, seen }: EarlierCounts = {},
  ): Promise<QuotaCount[]> => {
    const counts: QuotaCount[] = []
    const time = scriptTime(nowMs?.())
    // One after the other: decisions go on between two calls.
    for (const call of callsFor(floors, servers)) {
      const keys = call.map(([, { key }]) => key)
      const wanted = JSON.stringify(
        call.map(([, floor]) => [
          floor.endMs,
          floorOf(floor),
          before?.get(floor.key) ?? 0,
          seen === undefined ? -1 : (seen.get(floor.key) ?? 0),
        ]),
      )
      const reply = await run(servers.serverOf(keys[0] ?? ''), keys, [time, wanted])
      for (const [index, count] of readCounts(reply, call.length).entries()) counts[call[index]?.[0] ?? 0] = count
    }
    return counts
  }
  return {
    /**
     * Raises every count below its floor. One answer per floor, in their order. Safe to repeat. With what is known from
     * earlier, also lowers counts that were raised too high.
     */
    raise: (floors: readonly QuotaFloor[], earlier?: EarlierCounts) => ask(floors, ({ units }) => units, earlier),
    /** As `raise`, without raising. */
    look: (floors: readonly QuotaFloor[]) => ask(floors, () => 0),
    /** Returns the keys of the counts of these limits, of all subjects. */
    async find(limits: ReadonlySet<string>): Promise<string[]> {
      const found = new Set<string>()
      for (const server of servers.all()) {
        for await (const keys of scanKeys(server, 'weir:1:{*')) {
          for (const key of keys) if (limits.has(limitNameOf(key))) found.add(key)
        }
      }
      return [...found].sort()
    },
  }
}

/**
 * Returns what each count is to hold at least: the units of its use, less what resets took out. A use of a limit that
 * is not among the quotas is left out. A subject that was moved is counted where the policy has it now; `rootOf`
 * returns undefined for one that the policy does not have.
 */
export function quotaFloors(
  { uses, forgotten }: KnownUnits,
  quotas: readonly SummableQuota[],
  rootOf: (subject: string) => string | undefined,
): QuotaFloor[] {
  const limits = new Map(quotas.map(({ limit }) => [limit.name, limit]))
  const floors = uses.flatMap(({ root: lastRoot, ...use }) => {
    const limit = limits.get(use.limit)
    const root = rootOf(use.subject) ?? lastRoot
    const above = root === '' ? undefined : [{ id: root, timeZone: 'UTC', anchor: 1 }]
    return limit === undefined ? [] : [{ ...use, key: limitKey(limit, { ...use, ip: '', above }) }]
  })
  if (forgotten.length === 0) return floors
  const resets = Map.groupBy(forgotten, ({ count, end_ms: endMs }) => `${count} ${endMs}`)
  return floors.map((floor) => {
    const taken = resets.get(`${hashOfKeyPart(floor.key)} ${floor.endMs}`) ?? []
    const units = taken.reduce((left, one) => left - one.units, floor.units)
    return { ...floor, units: Math.max(0, units) }
  })
}
