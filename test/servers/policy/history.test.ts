import { hash } from 'node:crypto'
import { encodeChange, encodeEntityChange, type PolicyMessage } from '@weir/contracts/policy.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { deleteEntity, type EntityChange } from '@weir/policy/entities.ts'
import { createPolicyWriter } from '@weir/policy-feed/policy-writer.ts'
import { afterAll, expect, inject, test } from 'vitest'
import { startConsoleStack } from '../../support/console-stack.ts'
import { changesOf, policyOfSize, sizeChange } from '../../support/policy-topic.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { startConsole } from '../../support/start-console.ts'
import { until } from '../../support/until.ts'

const { kafka, tables, desk, close } = await startConsoleStack()
const writer = createPolicyWriter({ ...kafkaOptions(kafka.address), topic: topics.policy })
const addresses = { WEIR_KAFKA_BROKERS: kafka.address, WEIR_CLICKHOUSE_URL: tables.url }
const other = await startConsole({ ...addresses, WEIR_REDIS_URL: inject('redisUrl') })
afterAll(async () => {
  await other.close()
  await writer.close()
  await close()
})

interface Row {
  readonly offset: string
  readonly kind: string
  readonly name: string
  readonly body: string
  readonly change: string
}
/** The rows from an offset on, each as often as it is there once merged. */
const rowsFrom = (offset: bigint) =>
  tables.rows<Row>(
    `SELECT toString(h.offset) AS offset, kind, name, body, toString(change) AS change FROM weir.policy_history AS h FINAL
     WHERE topic = '${topics.policy}' AND h.offset >= ${offset} ORDER BY h.offset`,
  )
/** Publishes a change and waits until its last row is there; resolves to its offset. */
async function publish({ id, messages }: ReturnType<typeof changed>): Promise<bigint> {
  const offset = await writer.publish(messages)
  const isThere = async () => (await rowsFrom(offset)).some(({ name }) => name === id)
  await until(isThere)
  return offset
}

const changed = (changes: readonly EntityChange[], after?: { offset: string; id: string }) => {
  const id = uuidv7(Date.now())
  const audit = encodeChange(id, { atMs: Date.now(), by: 'test', summary: [], ...(after ? { after } : {}) })
  return { id, messages: [...changes.map(encodeEntityChange), audit] satisfies PolicyMessage[] }
}
const credential = 'a key that no table may hold'
const sha256 = hash('sha256', credential, 'hex')
const withCredentials = JSON.stringify({
  ...JSON.parse(policyOfSize(7)),
  subjects: { acme: { plan: 'free', keys: [{ sha256, id: 'acme-1' }] } },
  tokens: { ci: { sha256, scopes: ['read'] } },
  endpoints: { ops: { url: 'https://ops.example/secret-path', secretEnv: 'OPS_SECRET' } },
})

test('Each record of a limit, plan or subject is one row, however many consoles copy it, and no credential is in any', async () => {
  const first = changed(changesOf(withCredentials))
  await publish(first)
  await desk.kill()
  const second = changed([sizeChange(8), deleteEntity('subject', 'acme')])
  await publish(second)
  await desk.restart()
  await other.kill()
  const third = changed([sizeChange(9)])
  await publish(third)
  await other.restart()
  const rows = await rowsFrom(0n)
  const [ids, names] = [
    [first.id, second.id, third.id],
    ['change', 'limit', 'plan', 'subject'],
  ]
  expect(new Set(rows.map(({ kind }) => kind))).toEqual(new Set(names))
  expect(
    rows.map(({ kind, name, change }) => `${ids.indexOf(change) + 1} ${kind} ${kind === 'change' ? '' : name}`),
  ).toEqual([
    '1 limit minute',
    '1 plan free',
    '1 subject acme',
    '1 change ',
    '2 limit minute',
    '2 subject acme',
    '2 change ',
    '3 limit minute',
    '3 change ',
  ])
  expect(new Set(rows.map(({ offset }) => offset)).size).toBe(rows.length)
  const sizes = rows.filter(({ kind }) => kind === 'limit').map(({ body }) => JSON.parse(body).size)
  expect([sizes, rows[5]?.body]).toEqual([[7, 8, 9], ''])
  expect(JSON.stringify(rows)).not.toMatch(new RegExp(`${sha256}|secret-path|OPS_SECRET`))
})

test('A change that no process took over leaves only the row that says so', async () => {
  const first = changed(changesOf(policyOfSize(7)))
  const from = await publish(first)
  const firstAt = { offset: String(from), id: first.id }
  await publish(changed([sizeChange(8)], firstAt))
  await publish(changed([sizeChange(9)], firstAt))
  const rows = (await rowsFrom(from)).slice(1)
  expect(rows.map(({ kind, body }) => [kind, JSON.parse(body).size])).toEqual([
    ['limit', 8],
    ['change', undefined],
    ['overtaken', undefined],
  ])
})

test('A change of more rows than are held at a time is copied whole', async () => {
  const count = 6_000
  const subjects = Object.fromEntries(Array.from({ length: count }, (_, at) => [`s${at}`, { plan: 'free' }]))
  const from = await publish(changed([sizeChange(11)]))
  const many = changed(changesOf(JSON.stringify({ ...JSON.parse(policyOfSize(7)), subjects })))
  await publish(many)
  const rows = (await rowsFrom(from)).slice(1)
  expect([rows.length, new Set(rows.map(({ change }) => change))]).toEqual([count + 3, new Set([many.id])])
  expect(new Set(rows.map(({ offset }) => offset)).size).toBe(rows.length)
})

test('What ClickHouse did not take is copied once it does, and meanwhile /readyz says so', async () => {
  await tables.client.command({ query: 'RENAME TABLE weir.policy_history TO weir.hidden' })
  const change = changed([sizeChange(12)])
  const from = await writer.publish(change.messages)
  const warns = async () => /policy history: .*policy_history/.test(await (await fetch(`${desk.ops}/readyz`)).text())
  await until(warns)
  await tables.client.command({ query: 'RENAME TABLE weir.hidden TO weir.policy_history' })
  const isThere = async () => (await rowsFrom(from)).some(({ name }) => name === change.id)
  await until(isThere)
  await until(async () => !(await warns()))
})
