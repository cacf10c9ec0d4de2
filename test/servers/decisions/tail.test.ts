import { connect, createServer } from 'node:net'
import { topics } from '@weir/contracts/topics.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { createRecordSender, type RecordSender } from '@weir/kafka/send-records.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { type RunningServer, startServer } from '../../support/servers/start-server.ts'
import { startTables, type Tables } from '../../support/servers/tables.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'
import { runWeir } from '../../support/weir-up.ts'

let kafka: RunningServer
let tables: Tables
let sender: RecordSender
let desk: RunningConsole
beforeAll(async () => {
  kafka = await startServer(kafkaServer)
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  tables = await startTables()
  sender = createRecordSender(kafkaOptions(kafka.address))
  desk = await startConsole({
    ...{ WEIR_KAFKA_BROKERS: kafka.address, WEIR_CLICKHOUSE_URL: tables.url, WEIR_REDIS_URL: inject('redisUrl') },
  })
}, 180_000)
afterAll(async () => {
  await desk?.close()
  await sender?.close()
  await tables?.close()
  await kafka?.close()
})

let seq = 0
const ids: Record<string, string> = {}
/** A decision that only Kafka has, only the tables have, or both. */
async function decide(name: string, where: 'kafka' | 'tables' | 'both', more: object = {}): Promise<void> {
  seq += 1
  const id = uuidv7(Date.now())
  ids[id] = name
  const whole = {
    ...{ v: 1, id, ts: new Date().toISOString().replace('T', ' ').replace('Z', ''), subject: 'acme', key_id: 'acme-1' },
    ...{ plan: 'free', route: 'POST /v1/search', method: 'POST', cost: 5, count: 1, outcome: 'deny', reason: 'limit' },
    ...{ mode: 'enforce', charged: 'no', denied_by: 'minute', retry_ms: 9, seq },
    limits: [{ name: 'minute', size: 100, used: 98, remaining: 2, reset_ms: 9, by: {} }],
    ...{ journal: '01a20287-6fb6-7000-8000-000000000001', ...more },
  }
  if (where !== 'tables') await sender.send(topics.decisions, [{ key: 'acme', value: JSON.stringify(whole) }])
  if (where === 'kafka') return
  await tables.client.insert({ table: 'weir.decisions', values: [whole], format: 'JSONEachRow' })
}
/** Says that everything until now is in the tables. */
const mark = () =>
  tables.client.command({
    query: `INSERT INTO weir.marks (topic, journal, partition, mark, seq, first_mark, end)
      SELECT '${topics.decisions}', generateUUIDv4(), 0, now64(3) + 60, 1, now64(3), 0`,
  })

/** Stands before the console and notices once it is asked for a list: then the stream is followed. */
async function openDoor() {
  const { hostname, port } = new URL(desk.environment.WEIR_CONSOLE_URL)
  const door = { isAsked: false, url: '', close: () => server.close() }
  const server = createServer((from) => {
    const to = connect(Number(port), hostname)
    from.on('data', (data) => (door.isAsked ||= data.includes('GET /v1/decisions?')))
    for (const one of [from, to]) one.on('error', () => [from, to].map((other) => other.destroy()))
    from.pipe(to).pipe(from)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  door.url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  return door
}

test('weir tail prints what was before and what comes, each once, also over a restart of the console', async () => {
  await decide('before', 'tables')
  await decide('allowed', 'tables', { outcome: 'allow', reason: 'ok', denied_by: '' })
  const args = ['tail', '--denied', '--since', '5m']
  const door = await openDoor()
  const env = { ...process.env, ...desk.environment, WEIR_CONSOLE_URL: door.url }
  const child = spawnBound(['./weir', ...args], { env, stdio: 'pipe' })
  let [said, reported] = ['', '']
  child.stdout?.on('data', (data: Buffer) => (said += data.toString()))
  child.stderr?.on('data', (data: Buffer) => (reported += data.toString()))
  const names = () =>
    said
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => ids[line.split(' ').at(-1) ?? ''])
  const printed = async (name: string) =>
    expect(await waitUntil(() => names().includes(name), { deadlineMs: 30_000 })).toBe(true)
  try {
    expect(await waitUntil(() => door.isAsked, { deadlineMs: 30_000 })).toBe(true)
    // While the tables are behind: it comes by both ways.
    await decide('both', 'both')
    await mark()
    await printed('both')
    await decide('live', 'kafka')
    await printed('live')
    await decide('not refused', 'kafka', { outcome: 'allow', reason: 'ok', denied_by: '' })
    await decide('hostile', 'kafka', { subject: 'acme\u001b[31m\u202e', count: 3 })
    await printed('hostile')
    await desk.kill()
    await desk.restart()
    const goesOn = async () => {
      await decide('later', 'kafka')
      return names().includes('later')
    }
    expect(await waitUntil(goesOn, { deadlineMs: 30_000, everyMs: 200 })).toBe(true)
    expect(names().slice(0, 4)).toEqual(['before', 'both', 'live', 'hostile'])
    expect(new Set(said.split('\n')).size).toBe(said.split('\n').length)
    const line = said.split('\n').find((one) => one.includes('×3'))
    expect(line).toMatch(/^\d\d:\d\d:\d\d\.\d{3} ✕ acme\\u001b\[31m\\u202e POST \/v1\/search 5 minute 98\/100 ×3 /)
    expect(reported).toContain('listening again')
    expect(said).toContain('# decisions are missing here')
  } finally {
    child.kill('SIGTERM')
    await new Promise((done) => child.once('close', done))
    door.close()
  }
})

test('with --no-follow it prints what was before, as objects with --json', async () => {
  const { code, stdout } = await runWeir(['tail', '--no-follow', '--subject', 'acme', '--json'], desk.environment)
  const found = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect([code, found.map(({ id }) => ids[id])]).toEqual([0, ['before', 'allowed', 'both']])
  const wrong = await runWeir(['tail', '--no-follow', '--since', 'long'], desk.environment)
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--since')])
})
