import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { RunningConsole } from '../start-console.ts'

/** Each closing is of a payer of its own: what is closed already is only read. */
const payers = Array.from({ length: 40 }, (_, at) => `payer-${at}`)
/** A policy for everything that the processes ask of ClickHouse. */
export const leastRightsPolicy = `
version: 1
plans: { free: { limits: [day] }, paid: { limits: [], prices: api, budget: { amount: "9.00" } } }
prices: { api: { currency: EUR, lines: [{ name: all, measure: units, tiers: [{ unit_amount: "1" }] }] } }
subjects: { ${payers.map((id) => `${id}: { plan: paid }`).join(', ')} }
limits: { day: { algorithm: fixed_window, size: 1000, period: day, thresholds: [80%] } }
endpoints: { ops: { url: "http://127.0.0.1:1/", secretEnv: OPS_SECRET, allowPrivate: true } }
watches: { refusals: { alert: weir.denied_rate.high, factor: 3 }, sources: { alert: weir.allowed.high, per: address } }
`
/** The month before the present one. */
const period = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() - 1)).toISOString().slice(0, 7)
/** Closes it for a payer who has no invoice yet. */
export async function closeMonth(desk: RunningConsole) {
  const body = { period, subjects: [payers.at(-1) ?? ''], grace: '1ms', accept_gaps: 'a test' }
  const answer = await desk.ask<{ detail?: string }>('POST /v1/invoices', body)
  if (answer.status === 200) payers.pop()
  return answer
}
/** As `closeMonth`, once the history of the policy has the last change. */
export const closeWithHistory = (desk: RunningConsole) =>
  waitUntil(
    async () => {
      const answer = await closeMonth(desk)
      return answer.status !== 503 && answer
    },
    { deadlineMs: 30_000, everyMs: 100 },
  )

/** The policy's limit by the day with another size. */
export const dayLimit = (size: number) => ({ algorithm: 'fixed_window', size, period: 'day', thresholds: ['80%'] })

/** What the console is asked with each of its rights, about a decision that is there as well. */
export async function questions(client: ClickHouseClient): Promise<readonly string[]> {
  const answer = await client.query({ query: 'SELECT toString(any(id)) AS id FROM decisions', format: 'JSONEachRow' })
  const [decision] = await answer.json<{ id: string }>()
  return [
    ...[
      'usage?step=minute&subject=acme',
      'usage?step=hour&subject=acme',
      'usage?step=hour',
      'usage?by=reason&subject=acme',
      'outcomes?step=hour',
      'utilization',
    ],
    ...['alerts', 'invoices?subject=payer-0', `decisions/${decision?.id}`, 'decisions?status=200&corrected=true'],
  ]
}
