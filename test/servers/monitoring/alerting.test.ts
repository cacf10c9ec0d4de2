import type { ServerResponse } from 'node:http'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, test } from 'vitest'
import { openAlertingStack } from '../../support/alerting/open-alerting.ts'
import { forFile } from '../../support/opened.ts'

const stack = await forFile(openAlertingStack(['ops', 'gone']))
const alerting = await stack.start()

const metric = (name: string) => alerting.metric(`weir_${name}`)
const until = async (name: string, value: number) =>
  expect(await waitUntil(async () => (await metric(name)) >= value, { deadlineMs: 60_000, everyMs: 100 })).toBe(true)
const ofWebhooks = (result: string) => `deliveries_total{type="webhook",result="${result}"}`

test('Alerts and deliveries are counted by type and by result, each with its time', async () => {
  stack.answer('/gone', (out) => out.writeHead(410).end())
  await stack.decide(['first'], 800)
  await until(ofWebhooks('given_up'), 1)
  // Of two thresholds reached at once the lower one is superseded.
  await stack.decide(['second'], 1_000)
  await until(ofWebhooks('dropped'), 1)
  // Both to `ops`, and that `gone` is disabled.
  await until(ofWebhooks('delivered'), 3)
  const counts = {
    'alerts_raised_total{type="weir.quota.reached"}': 2,
    'alerts_raised_total{type="weir.endpoint.disabled"}': 1,
    'alerts_suppressed_total{cause="superseded"}': 1,
    'alerts_suppressed_total{cause="late"}': 0,
    alert_delay_seconds_count: 2,
    [ofWebhooks('delivered')]: 3,
    [ofWebhooks('failed')]: 0,
    [ofWebhooks('given_up')]: 1,
    [ofWebhooks('dropped')]: 1,
    'delivery_delay_seconds_count{type="webhook"}': 3,
    'delivery_attempt_duration_seconds_count{type="webhook"}': 4,
    'deliveries_total{type="slack"}': 0,
  }
  for (const [name, wanted] of Object.entries(counts)) expect([name, await metric(name)]).toEqual([name, wanted])
  expect(await metric('alert_delay_seconds_sum')).toBeLessThan(30)
})

test('The queue shows what is being sent and what waits for its next attempt', async () => {
  const held: ServerResponse[] = []
  stack.answer('/ops', (out) => void held.push(out))
  await stack.decide(['third'], 800)
  await until('deliveries_waiting{state="active"}', 1)
  for (const out of held) out.writeHead(500).end()
  await until(ofWebhooks('failed'), 1)
  await until('deliveries_waiting{state="delayed"}', 1)
  expect(await metric('deliveries_oldest_ready_seconds')).toBe(0)
})
