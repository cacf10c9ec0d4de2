import { randomUUID } from 'node:crypto'
import { readUnfinished } from '@weir/alerting/record/alert-queries.ts'
import type { CommandContext } from '@weir/cli/command-context.ts'
import { listAlerts, redeliver, showAlert, testEndpoint } from '@weir/cli/commands/alerts.ts'
import { addSilence, endSilence, listSilences } from '@weir/cli/commands/silences.ts'
import { noProgress } from '@weir/cli/terminal/progress.ts'
import { readRows } from '@weir/clickhouse/connect.ts'
import { insertBlock, linesOf } from '@weir/clickhouse/insert.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'
import { moment } from '@weir/core/format.ts'
import { expect, test } from 'vitest'
import { openAlertingStack } from '../../support/alerting/open-alerting.ts'
import { forFile } from '../../support/opened.ts'
import { startConsole } from '../../support/start-console.ts'
import { until } from '../../support/until.ts'

const stack = await forFile(openAlertingStack(['ops', 'gone']))
const alerting = await stack.start()
const admin = await forFile(
  startConsole({ WEIR_KAFKA_BROKERS: stack.kafka.address, WEIR_CLICKHOUSE_URL: stack.tables.url }),
)

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
    progress: noProgress,
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
  const sentTo = (path: string) => stack.received.filter((one) => one.path === path).map(({ body }) => JSON.parse(body))
  expect(sentTo('/gone').map(({ data }) => data.subject)).toEqual(['first'])
  const about = () => sentTo('/ops').filter(({ type }) => type === 'weir.endpoint.disabled')
  await until(() => about().length > 0)
  expect(about().map(({ data }) => data.subject)).toEqual(['gone'])
  const { id } = await outcomes('second')

  const shown = commandContext()
  await showAlert(id, { ...options, json: false }, shown.context)
  expect(shown.printed.join('\n')).toMatch(/weir\.quota\.reached {2}second {2}day: 80%, 800 of 1,000/)
  expect(shown.printed.join('\n')).toMatch(/gone +0 +dropped[\s\S]*disabled since/)
  expect(shown.printed.join('\n')).toMatch(/ops +1 of 10 +delivered/)
  const subjectsWith = async (...outcome: string[]) => {
    const { context, printed } = commandContext()
    await listAlerts({ ...options, limit: 10, outcome }, context)
    return JSON.parse(printed[0] ?? '[]').map((one: { readonly subject: string }) => one.subject)
  }
  // The alert of the endpoint that is disabled is of the subject `gone`, and went to `ops`.
  expect(await subjectsWith('given_up')).toEqual(['first'])
  expect(await subjectsWith('given_up', 'dropped')).toEqual(expect.arrayContaining(['second', 'first']))
  expect(await subjectsWith('failed')).toEqual([])
  const deliveredAt = async (endpoint: string, ...outcome: string[]) => {
    const { context, printed } = commandContext()
    await listAlerts({ ...options, limit: 10, endpoint, ...(outcome.length === 0 ? {} : { outcome }) }, context)
    return JSON.parse(printed[0] ?? '[]').map((one: { readonly subject: string }) => one.subject)
  }
  expect(await deliveredAt('gone')).toEqual(expect.arrayContaining(['second', 'first']))
  // What one endpoint took is not what another one took.
  expect(await deliveredAt('gone', 'delivered')).toEqual([])
  expect(await deliveredAt('ops', 'delivered')).toEqual(expect.arrayContaining(['second']))
  expect(await deliveredAt('op')).toEqual([])

  const refused = commandContext()
  expect(await testEndpoint('gone', { ...options, json: false }, refused.context)).toBe(false)
  expect(refused.said.at(-1)).toContain('gone rejected it: answered 410')
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

test('A silence keeps the webhook quiet, and the alert names it; a person may have it sent all the same', async () => {
  /** Runs a command and waits until alerting has the change of the policy that it makes. */
  const changed = async (make: () => Promise<void>) => {
    const seen = () => alerting.metric('weir_policy_changes_total{result="applied"}')
    const before = await seen()
    await make()
    await until(async () => (await seen()) > before)
  }
  const received = (subject: string) =>
    stack.received.filter(({ path, body }) => path === '/ops' && JSON.parse(body).data.subject === subject).length
  const made = commandContext()
  const silence = { subject: ['quiet'], type: ['weir.quota.reached'], for: '2h', reason: 'load test' }
  await changed(() => addSilence({ ...options, ...silence }, made.context))
  const { name, until: end } = JSON.parse(made.printed[0] ?? '{}')
  const listed = commandContext()
  await listSilences({ ...options, json: false }, listed.context)
  expect(listed.printed.join()).toMatch(
    new RegExp(`active .* ${moment(end, 'UTC')} +quiet, weir.quota.reached +root +load test +${name}`),
  )

  await stack.decide(['quiet', 'loud'], 800)
  await until(async () => (await outcomes('loud')).deliveries.ops === 'delivered')
  await until(async () => (await outcomes('quiet')).deliveries.ops === 'silenced')
  const { id } = await outcomes('quiet')
  const shown = commandContext()
  await showAlert(id, { ...options, json: false }, shown.context)
  expect(shown.printed.join('\n')).toMatch(new RegExp(`ops +0 +silenced .*by the silence ${name}`))
  expect([received('quiet'), received('loud')]).toEqual([0, 1])
  expect(await alerting.metric('weir_alerts_suppressed_total{cause="silenced"}')).toBe(1)
  const query = "SELECT subject, silence FROM weir.alerts FINAL WHERE subject IN ('quiet', 'loud') ORDER BY subject"
  expect(await readRows(stack.tables.client, query, {})).toEqual([
    { subject: 'loud', silence: '' },
    { subject: 'quiet', silence: name },
  ])

  await redeliver(id, { ...options, endpoint: 'ops' }, commandContext().context)
  await until(async () => (await outcomes('quiet')).deliveries.ops === 'delivered')
  expect(received('quiet')).toBe(1)

  await changed(() => endSilence(name, options, commandContext().context))
  await stack.decide(['quiet'], 1_000)
  await until(() => received('quiet') === 2)
}, 120_000)

test('An alert that was delivered stays delivered where it is raised and queued again with a later time', async () => {
  const { id, deliveries } = await outcomes('second')
  expect(deliveries.ops).toBe('delivered')
  const at = formatTs(Date.now() + 60_000)
  const queued = { alert_id: id, alert_type: 'weir.quota.reached', subject: 'second', endpoint: 'ops', attempt: 0 }
  const row = { ...queued, at, outcome: 'queued', status: 0, ms: 0, error: '', next_try: at, answer: '' }
  await insertBlock(stack.tables.client, { table: 'deliveries', lines: linesOf([row]), dedupToken: randomUUID() })
  expect((await outcomes('second')).deliveries.ops).toBe('delivered')
  const unfinished = await readUnfinished(stack.tables.client, { days: 5, settleSeconds: 0, limit: 1_000 })
  expect(unfinished.filter(({ alertId }) => alertId === id)).toEqual([])
})

test('an unknown alert or endpoint is named in the error', async () => {
  const nobody = '2ed6657d-e927-568b-95e1-2665a8aea6a2'
  await expect(showAlert(nobody, options, commandContext().context)).rejects.toThrow(`no alert "${nobody}"`)
  await expect(redeliver(nobody, options, commandContext().context)).rejects.toThrow('no alert')
  await expect(testEndpoint('opps', options, commandContext().context)).rejects.toThrow('no endpoint "opps"')
  const { id } = await outcomes('second')
  await expect(redeliver(id, { ...options, endpoint: 'opps' }, commandContext().context)).rejects.toThrow('no endpoint')
})
