import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { readRows } from '@weir/clickhouse/connect.ts'

/** A policy for everything that the processes ask of ClickHouse. */
export const leastRightsPolicy = `
version: 1
plans: { free: { limits: [day] }, paid: { limits: [], prices: api } }
prices: { api: { currency: EUR, lines: [{ name: all, measure: units, tiers: [{ unit_amount: "1" }] }] } }
subjects: { payer: { plan: paid } }
limits: { day: { algorithm: fixed_window, size: 1000, period: day, thresholds: [80%] } }
endpoints: { ops: { url: "http://127.0.0.1:1/", secretEnv: OPS_SECRET, allowPrivate: true } }
watches: { refusals: { alert: weir.denied_rate.high, factor: 3 }, sources: { alert: weir.allowed.high, per: address } }
`
/** The policy's limit by the day with another size. */
export const dayLimit = (size: number) => ({ algorithm: 'fixed_window', size, period: 'day', thresholds: ['80%'] })

/** What the console is asked with each of its rights, about a decision that is there as well. */
export async function questions(client: ClickHouseClient): Promise<readonly string[]> {
  const [decision] = await readRows<{ id: string }>(client, 'SELECT toString(any(id)) AS id FROM decisions')
  return [
    'usage?step=minute&subject=acme',
    'usage?step=hour&subject=acme',
    'usage?step=hour',
    'usage?unit=tokens&by=model',
    'usage?by=reason&subject=acme',
    'outcomes?step=hour',
    'utilization',
    'alerts',
    'spend?subject=payer',
    'usage/export?from=now-1h',
    `decisions/${decision?.id}`,
    'decisions?status=200&corrected=true',
  ]
}
