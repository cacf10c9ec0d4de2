import { rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { LoadReport } from '@weir/cli/load/report.ts'
import { projectRoot } from '@weir/cli/project.ts'
import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { afterAll, expect, test } from 'vitest'
import { startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { listenForTest } from '../../support/listen.ts'
import { folderForFile } from '../../support/opened.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { readTopic } from '../../support/servers/read-topic.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { startIngress } from '../../support/start-ingress.ts'
import { until } from '../../support/until.ts'
import { runWeir } from '../../support/weir-up.ts'

const algorithms = ['fixed_window', 'sliding_window', 'sliding_log', 'token_bucket']
const all = algorithms.map((name) => [name, name] as const)
/** A limit of each algorithm, on a plan with subjects of its own for each test. */
const policyOf = (upstream: string) => ({
  version: 1,
  plans: Object.fromEntries(all.map(([name]) => [name, { limits: [name] }])),
  limits: Object.fromEntries(all.map(([name]) => [name, { algorithm: name, size: 20, window: '4s' }])),
  routes: [{ match: 'POST /v1/search', cost: 2 }],
  upstreams: { api: { url: upstream, hosts: ['*'] } },
  subjects: Object.fromEntries(
    ['check', 'proxy', 'grpc', 'two', 'users'].flatMap((use) =>
      all.map(([plan]) => [`${use}-${plan}`, { plan, keys: [{ sha256: sha256(`key-${use}-${plan}`) }] }]),
    ),
  ),
  tokens: { app: { sha256: sha256('app-token'), scopes: ['check'] } },
})

const opened: { close(): Promise<void> }[] = []
const own = <T extends { close(): Promise<void> }>(one: T): T => {
  opened.push(one)
  return one
}
const dir = await folderForFile('load')
const policyFile = join(dir, 'weir.yaml')
const [first, second, port = 0] = [
  ...(await Promise.all([startServer(redisServer), startServer(redisServer)])),
  ...(await freePorts(1)),
]
own(first)
own(second)
const kafka = own(await startServer(kafkaServer))
const upstream = own(await startPlainUpstream())
await ensureTopics(kafkaOptions(kafka.address), await readTopics())
await writeFile(policyFile, JSON.stringify(policyOf(upstream.url)))
const common = { WEIR_POLICY_FILE: policyFile, WEIR_KAFKA_BROKERS: kafka.address }
const shared = { ...common, WEIR_API_PORT: `${port}`, WEIR_SHARE_PORTS: 'yes' }
const started = await Promise.all([
  startIngress({ ...common, WEIR_REDIS_URL: first.address }),
  startIngress({ ...shared, WEIR_REDIS_URL: first.address }),
  startIngress({ ...shared, WEIR_REDIS_URL: second.address }),
])
for (const one of started) own(one)
const ingress = started[0]
const twoApi = `http://127.0.0.1:${port}`
afterAll(async () => {
  for (const one of opened.toReversed()) await one.close()
})

const environment = () => ({ WEIR_ADMIN_TOKEN: 'app-token', INIT_CWD: dir })
const load = (...args: readonly string[]) => runWeir(['load', '--data', dir, ...args], environment())
async function loadJson(
  ...args: readonly string[]
): Promise<{ readonly code: number | null; readonly report: LoadReport }> {
  const { code, stdout, stderr } = await load('--json', '--policy', policyFile, ...args)
  expect(stderr).toBe('')
  return { code, report: JSON.parse(stdout) }
}
const subjectsOf = (use: string) => all.map(([name]) => `${use}-${name}`)

test.each(['check', 'proxy', 'grpc'] as const)(
  'every request that is sent through %s is decided and recorded once, and every limit is found to hold',
  async (via) => {
    const subjects = subjectsOf(via)
    await writeFile(join(dir, 'keys.yaml'), subjects.map((id) => `${id}: key-${id}\n`).join(''))
    const target = { check: ingress.api, proxy: ingress.proxy, grpc: `http://${ingress.grpc}` }[via]
    const seenBefore = upstream.seen.length
    const asked = ['--route', 'POST /v1/search', 'GET /hello', '--keys', 'keys.yaml']
    const pace = ['--rate', '150', '--for', '2s']
    const { code, report } = await loadJson(
      '--via',
      via,
      '--target',
      target,
      '--subject',
      ...subjects,
      ...asked,
      ...pace,
    )
    expect(code).toBe(0)
    expect(report.total).toMatchObject({ sent: 300, answered: 300, failed: 0, unsent: 0 })
    expect(report.limits?.map(({ name, verdict, why }) => [name, verdict, why]).toSorted()).toEqual(
      algorithms.map((name) => [name, 'held', null]).toSorted(),
    )
    const isOurs = (subject: string) => subjects.includes(subject)
    const decisionsOf = (records: readonly { readonly value: Buffer | null }[]) =>
      records.flatMap(({ value }) => {
        const parsed = value === null ? undefined : parseDecision(value)
        return parsed?.kind === 'decision' && isOurs(parsed.decision.subject) ? [parsed.decision] : []
      })
    const sum = (records: readonly { readonly count: number }[]) =>
      records.reduce((total, { count }) => total + count, 0)
    const found = await readTopic(
      kafkaOptions(kafka.address),
      topics.decisions,
      (records) => sum(decisionsOf(records)) >= 300,
    )
    const recorded = decisionsOf(found)
    const of = (outcome: string) => sum(recorded.filter((one) => one.outcome === outcome))
    const said = (isAllowed: boolean) => sum(report.decisions.filter(({ allowed }) => allowed === isAllowed))
    expect([said(true), said(false)]).toEqual([of('allow'), of('deny')])
    expect(of('deny')).toBeGreaterThan(50)
    const units = recorded.filter(({ outcome }) => outcome === 'allow').reduce((total, { cost }) => total + cost, 0)
    expect(report.limits?.reduce((total, { admitted_units }) => total + admitted_units, 0)).toBe(units)
    expect(upstream.seen.length - seenBefore).toBe(via === 'proxy' ? of('allow') : 0)
  },
)

test('limits that two Redis count are reported as broken, each with the instant and the counts, and exit code 1', async () => {
  const pace = ['--users', '40', '--think', '100ms', '--for', '3s']
  const { code, report } = await loadJson(
    '--target',
    twoApi,
    '--subject',
    ...subjectsOf('two'),
    '--route',
    'GET /',
    ...pace,
  )
  expect(code).toBe(1)
  expect(report.limits).toHaveLength(4)
  for (const limit of report.limits ?? []) {
    expect(limit).toMatchObject({
      verdict: 'broken',
      broken: { used: 20, cost: 1, scope: `subject two-${limit.name}` },
    })
    expect(Date.parse(limit.broken?.at ?? '')).toBeGreaterThanOrEqual(Date.parse(report.from))
    expect(Date.parse(limit.broken?.at ?? '')).toBeLessThanOrEqual(Date.parse(report.to) + 4_000)
    expect(limit.broken?.excess_units).toBe(limit.broken?.excess_requests)
  }
  const text = await load(
    '--policy',
    policyFile,
    '--target',
    ingress.api,
    '--subject',
    'users-sliding_log',
    '--users',
    '2',
    '--for',
    '1s',
  )
  expect(text.stdout).toContain('Users wait for their answers')
  expect([text.code, text.stdout]).toEqual([0, expect.stringMatching(/held \(times known within \d+ ms\)/)])
})

/** An API that answers no check before so many are under way; then each at once. */
async function startHoldingApi(count: number) {
  const held: ServerResponse[] = []
  let isOpen = false
  const server = createServer((request, response) => {
    request.resume()
    held.push(response)
    isOpen ||= held.length >= count
    if (!isOpen) return
    for (const one of held.splice(0))
      one.writeHead(200).end('{"allowed":true,"reason":"ok","denied_by":"","limits":[]}')
  })
  return `http://127.0.0.1:${await listenForTest(server)}`
}

test('a rate goes on while the server stalls, and latencies count from when each request was due', async () => {
  const url = await startHoldingApi(50)
  const { report } = await loadJson('--target', url, '--subject', 'check-sliding_log', '--rate', '100', '--for', '2s')
  expect(report.total).toMatchObject({ sent: 200, answered: 200, failed: 0 })
  // The first of fifty was due half a second before the fiftieth, and a quarter of all waited for it.
  expect(report.total.latency_ms?.max).toBeGreaterThan(480)
  expect(report.total.latency_ms?.p90).toBeGreaterThan(200)
  expect(report.limits?.[0]).toMatchObject({ verdict: 'not known', why: 'no answer to an admitted request named it' })
})

test.each([
  [['--profile', 'far.yaml'], 'the profile'],
  [['--rate', '1'], 'the state file'],
])('an address that is not this machine is refused without --target: %j', async (args, from) => {
  await writeFile(join(dir, 'far.yaml'), 'target: http://192.0.2.1:8081\nsteps: [{ rate: 1, for: 1s }]\n')
  await writeFile(join(dir, 'state.json'), '{"api": "http://192.0.2.1:8081", "adminToken": "weir_token"}')
  const { code, stderr } = await load('--policy', policyFile, ...args)
  await rm(join(dir, 'state.json'))
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(`192.0.2.1:8081, which ${from} names, is not this machine`),
  ])
  expect(stderr).toContain('--target http://192.0.2.1:8081')
})

test('a profile that is wrong is refused with every problem and its line', async () => {
  await writeFile(
    join(dir, 'wrong.yaml'),
    'vai: check\nskew: 9\nsteps:\n  - { rate: 1, think: 1s, for: 1s }\n  - { for: 25h }\n',
  )
  const { code, stderr } = await load('--profile', 'wrong.yaml')
  expect(code).toBe(2)
  for (const line of [
    '1:1  vai: is not a setting',
    '2:7  skew: must be from 0 to 5',
    '4:5  steps[0]: has `think`',
    '5:12  steps[1].for: must be from 1s to 24h',
  ])
    expect(stderr).toContain(line)
  const many = await load('--rate', '100000', '--for', '1h', '--target', ingress.api)
  expect([many.code, many.stderr]).toEqual([2, expect.stringContaining('a load has at most 2000000')])
})

test('where no server is, the load ends early with a reason', async () => {
  const [port] = await freePorts(1)
  const where = ['--target', `http://127.0.0.1:${port}`, '--policy', policyFile]
  const { code, stderr } = await load(...where, '--rate', '400', '--for', '1h')
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/None of 1\d\d requests was answered: ECONNREFUSED.*TARGET_UNAVAILABLE/),
  ])
})

test('a load is compared with an earlier one, and Ctrl-C ends one with what came until then', async () => {
  const where = ['--target', ingress.api, '--policy', policyFile, '--subject', 'users-token_bucket']
  const before = await load(...where, '--rate', '50', '--for', '1s', '--json')
  await writeFile(join(dir, 'before.json'), before.stdout)
  const wrong = await load(...where, '--rate', '1', '--compare', policyFile)
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('is not the output of weir load --json')])
  const args = ['load', '--data', dir, ...where, '--rate', '50', '--for', '1h', '--compare', 'before.json']
  const decided = async () => {
    const metrics = await (await fetch(`${ingress.ops}/metrics`)).text()
    return Number(/^weir_decision_source_total\{source="redis"\} (\d+)/m.exec(metrics)?.[1])
  }
  const decidedBefore = await decided()
  const child = spawnBound([join(projectRoot, 'weir'), ...args], {
    env: { ...process.env, ...environment() },
    stdio: 'pipe',
  })
  let stdout = ''
  child.stdout?.on('data', (data: Buffer) => (stdout += data.toString()))
  const ended = new Promise<number | null>((done) => child.once('close', done))
  await until(async () => (await decided()) > decidedBefore + 5, 20_000)
  child.kill('SIGINT')
  expect(await ended).toBe(130)
  expect(stdout).toMatch(/FIGURE +BEFORE +NOW +CHANGE/)
  expect(stdout).toMatch(/limit token_bucket +held +held/)
})
