import { join } from 'node:path'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import type { Stack } from './stack.ts'
import { callWeir } from './stack-command.ts'
import { openStackRedis } from './stack-redis.ts'

/** One line of `weir audit`. */
export interface Finding {
  readonly check: string
  readonly what: string
  readonly where: string
  readonly expected: string
  readonly found: string
}

export interface AuditReport {
  readonly code: number | null
  readonly findings: readonly Finding[]
  readonly repaired?: readonly string[]
  readonly left?: readonly Finding[]
  /** Charged for requests that were cut off. */
  readonly above: { readonly counts: number; readonly units: number }
  readonly compared: { readonly offsets: number; readonly counts: number }
}

/** As a person calls it, of the stack's own servers. */
export async function weirAudit(stack: Stack, ...flags: readonly string[]): Promise<AuditReport> {
  const args = ['audit', '--policy', join(stack.dir, 'policy.yaml'), '--json', ...flags]
  const { code, stdout, stderr } = await callWeir(stack, args)
  if (stdout === '') throw new Error(`weir audit: ${code} ${stderr}`)
  return { code, ...JSON.parse(stdout) }
}

/** What Weir has counted of quotas. */
export type HandDamage = ReturnType<typeof openHandDamage>

const usedQuery = `SELECT concat('weir:1:{', subject, '}:', splitByChar('-', subject)[1], '-day') AS key,
  sum(toInt64(cost * count) + adjustment) AS units FROM weir.decisions
  WHERE toDate(ts, 'UTC') = toDate(now(), 'UTC') AND charged = 'yes' AND subject NOT LIKE 'narrow-%' GROUP BY key ORDER BY key`

/** A fixed window's count: a letter, the end of its period, and the units. */
const [stateBytes, unitsAt] = [17, 9]

export function openHandDamage({ addresses }: Stack) {
  const clickhouse = connectClickhouse(addresses.clickhouse, 'hand-damage', 60_000)
  const redis = openStackRedis({ addresses })
  return {
    /** Units used up of each daily quota, by key: as ClickHouse sums them up, and as Redis has them. */
    async usedByRows() {
      const rows = await readRows<{ key: string; units: string }>(clickhouse, usedQuery)
      return Object.fromEntries(rows.map(({ key, units }) => [key, Number(units)]))
    },
    async usedByRedis(keys: readonly string[]) {
      const states = await Promise.all(keys.map((key) => redis.getBuffer(key)))
      const unitsOf = (state: Buffer | null | undefined) =>
        state?.length === stateBytes ? state.readDoubleBE(unitsAt) : 0
      return Object.fromEntries(keys.map((key, index) => [key, unitsOf(states[index])]))
    },
    async close() {
      redis.disconnect()
      await clickhouse.close()
    },
  }
}
