import { listAlerts, redeliver, showAlert, testEndpoint } from '@weir/cli/commands/alerts.ts'
import type { Surroundings } from '@weir/cli/project.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AlertingStack, openAlertingStack } from '../../support/alerting/open-alerting.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'

let stack: AlertingStack
let admin: RunningConsole
beforeAll(async () => {
  stack = await openAlertingStack(['ops', 'gone'])
  await stack.start()
  admin = await startConsole({ WEIR_KAFKA_BROKERS: stack.kafka.address, WEIR_CLICKHOUSE_URL: stack.tables.url })
}, 120_000)
afterAll(async () => {
  await admin?.close()
  await stack?.close()
})

const until = async (condition: () => boolean | Promise<boolean>, deadlineMs = 60_000) =>
  expect(await waitUntil(condition, { deadlineMs, everyMs: 50 })).toBe(true)

/** A command's surroundings, with what it printed and said. */
function around() {
  const printed: string[] = []
  const said: string[] = []
  const surroundings: Surroundings = {
    environment: admin.environment,
    cwd: '/',
    say: (line) => void said.push(line),
    print: (text) => void printed.push(text),
    signal: new AbortController().signal,
  }
  return { surroundings, printed, said }
}
const options = { data: '/nowhere', json: true }

const idsAt = (path: string) => stack.received.flatMap((one) => (one.path === path ? [one.headers['webhook-id']] : []))
const outcomes = async (subject: string) => {
  const { surroundings, printed } = around()
  await listAlerts({ ...options, subject, limit: 10 }, surroundings)
  const [alert] = JSON.parse(printed[0] ?? '[]')
  return { id: String(alert?.id ?? ''), deliveries: alert?.deliveries ?? {} }
}

test('what an endpoint refused for good is listed, shown, and delivered again once a test has found it working', async () => {
  const startedAt = new Date().toISOString()
  stack.answer('/gone', (out) => out.writeHead(410).end())
  await stack.decide(['first'], 800)
  await until(async () => (await outcomes('first')).deliveries.gone === 'given_up')
  await stack.decide(['second'], 800)
  await until(async () => (await outcomes('second')).deliveries.gone === 'dropped')
  const { id } = await outcomes('second')

  const shown = around()
  await showAlert(id, { ...options, json: false }, shown.surroundings)
  expect(shown.printed.join('\n')).toMatch(/weir\.quota\.reached {2}second {2}day: 80 %, 800 of 1000/)
  expect(shown.printed.join('\n')).toMatch(/gone +0 +dropped[\s\S]*disabled since/)

  const refused = around()
  expect(await testEndpoint('gone', { ...options, json: false }, refused.surroundings)).toBe(false)
  expect(refused.said.at(-1)).toContain('gone did not take it: answered 410')
  stack.answer('/gone', (out) => out.writeHead(200).end())
  const taken = around()
  expect(await testEndpoint('gone', { ...options, json: false }, taken.surroundings)).toBe(true)

  const bulk = around()
  await redeliver(
    undefined,
    { ...options, from: startedAt, endpoint: 'gone', type: 'weir.quota.reached' },
    bulk.surroundings,
  )
  expect(JSON.parse(bulk.printed[0] ?? '')).toEqual({ requested: 2 })
  await until(async () => (await outcomes('second')).deliveries.gone === 'delivered')
  await until(async () => (await outcomes('first')).deliveries.gone === 'delivered')

  const before = idsAt('/ops').filter((one) => one === id).length
  await redeliver(id, { ...options, endpoint: 'ops' }, around().surroundings)
  await until(() => idsAt('/ops').filter((one) => one === id).length === before + 1)
  expect(before).toBe(1)
}, 180_000)

test('what nobody knows is told', async () => {
  const nobody = '2ed6657d-e927-568b-95e1-2665a8aea6a2'
  await expect(showAlert(nobody, options, around().surroundings)).rejects.toThrow(`no alert "${nobody}"`)
  await expect(redeliver(nobody, options, around().surroundings)).rejects.toThrow('no alert')
  await expect(testEndpoint('opps', options, around().surroundings)).rejects.toThrow('no endpoint "opps"')
  const { id } = await outcomes('second')
  await expect(redeliver(id, { ...options, endpoint: 'opps' }, around().surroundings)).rejects.toThrow('no endpoint')
})
