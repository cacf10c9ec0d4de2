import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { openWithPolicy } from '../testing/open-console.ts'
import { askProcesses } from './ask-processes.ts'

const urlOf = (server: { address(): unknown }) => `http://127.0.0.1:${(server.address() as { port: number }).port}`

/** Answers as the ops port of a process does. */
async function opsServer(ready: string, metrics: string) {
  const server = createServer(({ url }, response) => {
    response.writeHead(url === '/readyz' && ready !== 'ok' ? 503 : 200)
    response.end(`${url === '/readyz' ? ready : metrics}\n`)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  return urlOf(server)
}

const lag = [
  '# HELP weir_consumer_lag_records x',
  'weir_consumer_lag_records{of="a b"} 3',
  'weir_consumer_lag_records 4',
]

const sources = ['redis', 'unavailable'].map((source, n) => `weir_decision_source_total{source="${source}"} ${n + 1}`)

const circuits = [
  'weir_endpoint_circuits_open{endpoint="ops"} 1',
  'weir_endpoint_circuits_open{endpoint="finance"} 0',
  'weir_endpoint_circuits_open{endpoint="customers"} 3',
]

test('processes are asked at once; one that hangs, one that is gone and one that is not ready are said to be so', async () => {
  const hanging = createServer(() => undefined)
  await new Promise<void>((done) => hanging.listen(0, '127.0.0.1', done))
  onTestFinished(() => void hanging.closeAllConnections())
  const gone = createServer()
  await new Promise<void>((done) => gone.listen(0, '127.0.0.1', done))
  const goneUrl = urlOf(gone)
  await new Promise((done) => gone.close(done))
  const found = await askProcesses([
    { name: 'well', url: await opsServer('ok', [...lag, ...sources, ...circuits, 'weir_other 9'].join('\n')) },
    { name: 'waits', url: await opsServer('kafka: no answer', '') },
    { name: 'hangs', url: urlOf(hanging) },
    { name: 'gone', url: goneUrl },
  ])
  const unavailable = 'weir_decision_source_total{source="unavailable"}'
  expect(found[0]?.heldBack).toEqual({ ops: 1, customers: 3 })
  expect(found.map(({ name, ready, said, metrics }) => [name, ready, said, metrics])).toEqual([
    ['well', true, [], { weir_consumer_lag_records: 7, [unavailable]: 2, weir_endpoint_circuits_open: 4 }],
    ['waits', false, ['kafka: no answer'], {}],
    ['hangs', false, ['no response within 1 s'], {}],
    ['gone', false, ['no answer: ECONNREFUSED'], {}],
  ])
})

const nowMs = Date.parse('2026-11-20T10:00:00Z')
const well = { name: 'metering', url: 'http://m', ready: true, said: [], metrics: {}, heldBack: {} }
const statusParts = { recentGaps: async () => [], redisProblem: async () => undefined, processes: async () => [well] }
const counted = { askCompleteness: async () => ({ completeThroughMs: nowMs - 2_000, silent: [] }) }
const clock = { nowMs: () => nowMs }

async function lookOf(overrides: Parameters<typeof openWithPolicy>[0]) {
  const { ask } = await openWithPolicy({ clock, status: statusParts, ...counted, ...overrides })
  const answer = await ask('/v1/status')
  const { ok, look, warnings } = answer.json()
  expect([answer.statusCode, ok]).toEqual([200, look.length === 0])
  return [...look, ...warnings]
}

test('every part that is not as it should be has its sentence, and no other', async () => {
  // The console in memory knows of one delivery that was given up.
  const failed = '1 delivery to ops failed for good in 24 h'
  expect(await lookOf({})).toEqual([failed])
  const silent = [{ journal: 'j1', sinceMs: nowMs - 90_000 }]
  const behind = async () => ({ completeThroughMs: nowMs - 61_000, silent })
  expect(await lookOf({ askCompleteness: behind })).toEqual([
    'no reports from journal j1 since 2026-11-20T09:58:30.000Z',
    'usage is 61 s behind',
    failed,
  ])
  const down = async () => await Promise.reject(new Error('refused'))
  const ill = {
    ...well,
    said: ['redis: warning: it may evict counts'],
    metrics: {
      weir_consumer_stopped_partitions: 1,
      weir_redis_servers_gone: 2,
      weir_decisions_without_redis_ratio: 0.0525,
    },
    heldBack: { ops: 1, customers: 3 },
  }
  const status = { recentGaps: down, redisProblem: async () => 'Redis does not answer', processes: async () => [ill] }
  expect(await lookOf({ askCompleteness: down, status })).toEqual([
    'usage is not known: ClickHouse did not answer',
    'gaps are not known: ClickHouse did not answer',
    failed,
    'Redis does not answer',
    'metering: 1 partition is stopped: see weir dlq, weir metering seek',
    'metering: 2 Redis servers are unreachable',
    'metering: 5.3% of the decisions of the last 5 minutes were made without Redis',
    'metering: deliveries to ops are held back because it fails: weir alerts ls --endpoint ops',
    'metering: deliveries to customers are held back because it fails at 3 addresses: weir alerts ls --endpoint customers',
    'metering: redis: warning: it may evict counts',
  ])
})

test('what is late once is told as it was before, what is late twice is told as late, and none is waited for', async () => {
  const never = new Promise<never>(() => undefined)
  const late = { ...well, ready: false, said: ['no response within 1 s'] }
  let isLate = false
  const status = {
    ...statusParts,
    recentGaps: () => (isLate ? never : Promise.resolve([])),
    processes: async () => [isLate ? late : well],
  }
  const { ask } = await openWithPolicy({ clock, ...counted, status })
  const look = async () => (await ask('/v1/status')).json().look as string[]
  const before = await look()
  isLate = true
  expect(await look()).toEqual(before)
  const startedAt = performance.now()
  expect(await look()).toEqual(
    expect.arrayContaining(['gaps are not known: ClickHouse did not answer', 'metering: no response within 1 s']),
  )
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})
