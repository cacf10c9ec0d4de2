import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { topics } from '@weir/contracts/topics.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { afterAll, expect, test } from 'vitest'
import { startConsoleStack } from '../../support/console-stack.ts'
import { startNginx } from '../../support/gateways/nginx.ts'
import { startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import { snippet } from '../../support/gateways/start-gateway.ts'
import { forFile } from '../../support/opened.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { readTopic } from '../../support/servers/read-topic.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { type ServiceProcess, startServiceProcess } from '../../support/service-process.ts'
import { startIngress } from '../../support/start-ingress.ts'
import { until } from '../../support/until.ts'
import { runWeir } from '../../support/weir-up.ts'

const policy = {
  version: 1,
  identity: { trustedProxies: ['127.0.0.1/32'] },
  plans: { free: { limits: [] } },
  limits: { otp: { algorithm: 'fixed_window', size: 5, window: '1h', by: ['key', 'ip'], block: '2m' } },
  routes: [{ match: 'POST /v1/otp', limits: ['otp'] }],
  subjects: { acme: { plan: 'free', keys: [{ sha256: sha256('acme-key'), id: 'app' }] } },
}

const services: ServiceProcess[] = []
const redis = await forFile(startServer(redisServer))
const stack = await forFile(startConsoleStack({ policy, environment: { WEIR_REDIS_URL: redis.address } }))
const desk = stack.desk
const addresses = { WEIR_KAFKA_BROKERS: stack.kafka.address, WEIR_REDIS_URL: redis.address }
const servers = { ...addresses, WEIR_POLICY_FILE: join(redis.dir, 'weir.yaml') }
await writeFile(servers.WEIR_POLICY_FILE, JSON.stringify(policy))
const withTables = { ...servers, WEIR_CLICKHOUSE_URL: stack.tables.url }
for (const name of ['metering', 'alerting'] as const) services.push(await startServiceProcess(name, withTables))
const ingress = await forFile(startIngress(servers))
const upstream = await forFile(startPlainUpstream())
const nginx = await forFile(startNginx({ weirApi: ingress.api, upstream: upstream.url, refusesBlocked: true }))
afterAll(async () => {
  for (const service of services) await service.kill('SIGTERM')
})

const blocked = ['127.0.0.11', '127.0.0.12', '127.0.0.13']
const otp = (from: string) =>
  send(nginx.url, { method: 'POST', path: '/v1/otp', headers: { 'x-api-key': 'acme-key' }, from })

/** Runs the script of the documents once, as a timer would. */
async function poll(): Promise<void> {
  const script = join(nginx.dir, 'weir-blocked.sh')
  const header = join(nginx.dir, 'weir-token.header')
  await writeFile(header, `Authorization: Bearer ${desk.environment.WEIR_ADMIN_TOKEN}\n`)
  await writeFile(
    script,
    await snippet('nginx/weir-blocked.sh', [
      ['/etc/nginx/weir-blocked.list', join(nginx.dir, 'weir-blocked.list')],
      ['/etc/nginx/weir-token.header', header],
      ['http://127.0.0.1:8090', desk.environment.WEIR_CONSOLE_URL],
      ['nginx -s reload', `nginx -p ${nginx.dir} -e stderr -c ${nginx.dir}/nginx.conf -s reload`],
    ]),
  )
  await promisify(execFile)('/bin/sh', [script])
}

/** A worker with the list of before takes connections for a moment after a reload. */
async function untilOneWorker(): Promise<void> {
  const workers = () => promisify(execFile)('ps', ['-o', 'pid=', '--ppid', String(nginx.pid)])
  await until(async () => (await workers()).stdout.trim().split(/\s+/).length === 1)
}

test('one key guessed from three addresses: three alerts, nginx refuses the addresses by itself, and lets in the one that is lifted', async () => {
  for (const address of blocked) {
    for (let n = 0; n < 5; n += 1) expect((await otp(address)).status).toBe(200)
    expect((await otp(address)).status).toBe(429)
  }
  const alerts = await readTopic(kafkaOptions(stack.kafka.address), topics.alerts, (records) => records.length >= 3)
  expect(alerts.map(({ headers }) => headers.ce_type)).toEqual(Array(3).fill('weir.limit.blocked'))
  expect(alerts.map(({ value }) => JSON.parse(String(value)).by.ip).toSorted()).toEqual(blocked)

  const asked = upstream.seen.length
  const isRefused = async () => {
    await poll()
    return (await Promise.all(blocked.map(otp))).every(({ status }) => status === 403)
  }
  await until(isRefused, 30_000)
  await untilOneWorker()
  expect(await readFile(join(nginx.dir, 'weir-blocked.list'), 'utf8')).toBe(
    '127.0.0.11 1;\n127.0.0.12 1;\n127.0.0.13 1;\n',
  )
  const refused = await otp('127.0.0.12')
  expect([refused.status, refused.headers.server, refused.headers['weir-decision']]).toEqual([
    403,
    expect.stringMatching(/^nginx/),
    undefined,
  ])
  expect(upstream.seen.length).toBe(asked)
  expect((await otp('127.0.0.14')).status).toBe(200)

  const listed = await runWeir(['blocks', '--ip', '127.0.0.12', '--json'], desk.environment)
  const [{ id }]: [{ id: string }] = JSON.parse(listed.stdout)
  expect((await runWeir(['blocks', 'lift', id, '--forget'], desk.environment)).stdout).toContain('block lifted')
  await poll()
  const isAdmitted = async () => (await otp('127.0.0.12')).status === 200
  await until(isAdmitted, 10_000)
  await untilOneWorker()
  expect((await otp('127.0.0.11')).status).toBe(403)

  // A network that a person has blocked is in the same list.
  const made = await desk.ask('POST /v1/blocks', { ip: '127.0.0.64/30', for: '1h', reason: 'scraping' })
  expect(made.status).toBe(201)
  const isNetworkRefused = async () => {
    await poll()
    const { status, headers } = await otp('127.0.0.65')
    return status === 403 && headers['weir-decision'] === undefined
  }
  await until(isNetworkRefused, 30_000)
  await untilOneWorker()
  expect(await readFile(join(nginx.dir, 'weir-blocked.list'), 'utf8')).toContain('127.0.0.64/30 1;\n')
  expect([(await otp('127.0.0.66')).status, (await otp('127.0.0.68')).status]).toEqual([403, 200])

  // A console that does not answer leaves the list as it was.
  await desk.kill()
  await expect(poll()).rejects.toThrow('curl')
  expect((await otp('127.0.0.11')).status).toBe(403)
})
