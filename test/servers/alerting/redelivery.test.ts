import type { CommandContext } from '@weir/cli/command-context.ts'
import { listAlerts, redeliver, showAlert, testEndpoint } from '@weir/cli/commands/alerts.ts'
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

/** A command's context, with what it printed and said. */
function commandContext() {
  const printed: string[] = []
  const said: string[] = []
  const context: CommandContext = {
    environment: admin.environment,
    cwd: '/',
    report: (line) => void said.push(line),
    print: (text) => void printed.push(text),
    signal: new AbortController().signal,
  }
  return { context, printed, said }
}
const options = { data: '/nowhere', json: true }

const idsAt = (path: string) => stack.received.flatMap((one) => (one.path === path ? [one.headers['webhook-id']] : []))
const outcomes = async (subject: string) => {
  const { context, printed } = commandContext()
  await listAlerts({ ...options, subject, limit: 10 }, context)
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

  const shown = commandContext()
  await showAlert(id, { ...options, json: false }, shown.context)
  expect(shown.printed.join('\n')).toMatch(/weir\.quota\.reached {2}second {2}day: 80 %, 800 of 1000/)
  expect(shown.printed.join('\n')).toMatch(/gone +0 +dropped[\s\S]*disabled since/)

  const refused = commandContext()
  expect(await testEndpoint('gone', { ...options, json: false }, refused.context)).toBe(false)
  expect(refused.said.at(-1)).toContain('gone did not take it: answered 410')
  stack.answer('/gone', (out) => out.writeHead(200).end())
  const taken = commandContext()
  expect(await testEndpoint('gone', { ...options, json: false }, taken.context)).toBe(true)

  const bulk = commandContext()
  await redeliver(
    undefined,
    { ...options, from: startedAt, endpoint: 'gone', type: 'weir.quota.reached' },
    bulk.context,
  )
  expect(JSON.parse(bulk.printed[0] ?? '')).toEqual({ requested: 2 })
  await until(async () => (await outcomes('second')).deliveries.gone === 'delivered')
  await until(async () => (await outcomes('first')).deliveries.gone === 'delivered')

  const before = idsAt('/ops').filter((one) => one === id).length
  await redeliver(id, { ...options, endpoint: 'ops' }, commandContext().context)
  await until(() => idsAt('/ops').filter((one) => one === id).length === before + 1)
  expect(before).toBe(1)
}, 180_000)

test('an unknown alert or endpoint is named in the error', async () => {
  const nobody = '2ed6657d-e927-568b-95e1-2665a8aea6a2'
  await expect(showAlert(nobody, options, commandContext().context)).rejects.toThrow(`no alert "${nobody}"`)
  await expect(redeliver(nobody, options, commandContext().context)).rejects.toThrow('no alert')
  await expect(testEndpoint('opps', options, commandContext().context)).rejects.toThrow('no endpoint "opps"')
  const { id } = await outcomes('second')
  await expect(redeliver(id, { ...options, endpoint: 'opps' }, commandContext().context)).rejects.toThrow('no endpoint')
})
