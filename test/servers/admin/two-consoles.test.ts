import { afterAll, expect, inject, test } from 'vitest'
import { startConsoleOnKafka } from '../../support/console-stack.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'
import { until } from '../../support/until.ts'

const policyText = `
version: 1
plans: { free: { limits: [] }, gold: { limits: [] } }
limits: { minute: { algorithm: fixed_window, size: 1, window: 1m } }
subjects: { acme: { plan: free } }
`

const { kafka, desk: first, close } = await startConsoleOnKafka({ policy: policyText })
const second = await startConsole({ WEIR_KAFKA_BROKERS: kafka.address, WEIR_CLICKHOUSE_URL: inject('clickhouseUrl') })
afterAll(async () => {
  await second.close()
  await close()
})

interface Page {
  readonly items: readonly { readonly id: string; readonly total: number }[]
}

const policyOf = async (admin: RunningConsole) => (await admin.ask('GET /v1/policy')).body
const agree = async () => JSON.stringify(await policyOf(first)) === JSON.stringify(await policyOf(second))
const untilTheyAgree = async () => await until(agree, 30_000)

/** Changes that were stored behind one that their console did not know yet. */
async function overtaken(): Promise<number> {
  const logs = await Promise.all([first.readLog(), second.readLog()])
  return logs.join('').split('"isTaken":false').length - 1
}

/** Repeats a race until the two have met in the topic three times. */
async function race(round: (at: number) => Promise<void>): Promise<void> {
  const before = await overtaken()
  for (let at = 0; at < 100 && (await overtaken()) < before + 3; at += 1) await round(at)
  expect(await overtaken()).toBeGreaterThanOrEqual(before + 3)
}

test('Of two edits with If-Match through two consoles one is made, and the other is refused', async () => {
  await race(async (at) => {
    await untilTheyAgree()
    const tag = String((await first.ask('GET /v1/limits/minute')).headers.get('etag'))
    const put = (admin: RunningConsole, size: number) =>
      admin.ask('PUT /v1/limits/minute', { algorithm: 'fixed_window', size, window: '1m' }, { 'if-match': tag })
    const answers = await Promise.all([put(first, 2 * at + 2), put(second, 2 * at + 3)])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 412])
    await untilTheyAgree()
    const winner = answers.find(({ status }) => status === 200)
    expect((await second.ask('GET /v1/limits/minute')).body).toEqual(winner?.body)
  })
})

test('A change through one console is checked against what the other has just changed, and nothing of it is left behind', async () => {
  const changes = async () => (await first.ask<Page>('GET /v1/changes?limit=1000')).body.items
  const before = (await changes()).length
  let made = 0
  await race(async () => {
    const reset = [
      await first.ask('PUT /v1/plans/gold', { limits: [] }),
      await first.ask('PUT /v1/subjects/acme', { plan: 'free' }),
    ]
    await untilTheyAgree()
    // Each is right by itself; together they would leave a subject without a plan.
    const answers = await Promise.all([
      first.ask('DELETE /v1/plans/gold'),
      second.ask('PUT /v1/subjects/acme', { plan: 'gold' }),
    ])
    const statuses = answers.map(({ status }) => status)
    expect([
      [204, 422],
      [422, 200],
    ]).toContainEqual(statuses)
    await untilTheyAgree()
    const plan = statuses[1] === 200 ? 'gold' : 'free'
    expect((await policyOf(first)) as object).toMatchObject({ subjects: { acme: { plan } } })
    made += [...reset, ...answers].filter(({ headers }) => headers.has('weir-change')).length
  })
  expect((await changes()).length).toBe(before + made)
  const lived = await policyOf(first)
  await second.kill()
  await second.restart()
  expect(await policyOf(second)).toEqual(lived)
  expect((await second.ask<Page>('GET /v1/changes?limit=1000')).body.items).toEqual(await changes())
  const ready = await fetch(`${second.ops}/readyz`)
  // Not that it refused what it read. ClickHouse may have no tables here: that is another part's warning.
  expect([ready.status, await ready.text()]).toEqual([200, expect.not.stringContaining('policy: ')])
})
