import type { IncomingMessage } from 'node:http'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { allowLoad, askOnce, expectCounted, startLoad } from '../support/docker/counted-load.ts'
import type { PageShell } from '../support/docker/page-shell.ts'
import { docker, openHelloServer, openShell, showLogs } from '../support/docker/tier.ts'
import { allFences } from '../support/docs/fences.ts'
import { until } from '../support/until.ts'

/** What is read of Prometheus' answers. */
interface PrometheusAnswer {
  readonly data: {
    readonly activeTargets: readonly { readonly health: string }[]
    readonly groups: readonly { readonly rules: readonly unknown[] }[]
    readonly result: readonly unknown[]
  }
}

const services = ['ingress', 'metering', 'alerting', 'console']
/** The commands of docs/deploy/docker.md: secrets and policy, start, requests. */
const [prepare, start, ask] = allFences.filter(({ path }) => path === 'docs/deploy/docker.md').map(({ text }) => text)

let shell: PageShell
const opened: { close(): void }[] = []
const webhooks: { readonly headers: IncomingMessage['headers']; readonly body: string }[] = []

const clickhouse = async (sql: string) => (await fetch('http://127.0.0.1:18123/', { method: 'POST', body: sql })).text()

beforeAll(async () => {
  shell = openShell()
  opened.push(shell, await openHelloServer(8070))
  opened.push(await openHelloServer(8071, (request, body) => webhooks.push({ headers: request.headers, body })))
})

afterEach(({ task }) => showLogs(task, shell))

afterAll(async () => {
  await shell.run('docker compose --profile monitoring down --volumes --timeout 30', 120_000)
  for (const one of opened) one.close()
}, 130_000)

test('Compose reads it, and a secret that is missing stops the start by its name', async () => {
  await expect(shell.run('docker compose config -q', 60_000)).rejects.toThrow(
    /WEIR_(?:ADMIN_TOKEN|DEMO_WEBHOOK_SECRET)/,
  )
  await shell.run(prepare ?? '', 10_000)
  expect((await shell.run('docker compose config -q', 60_000)).trim()).toBe('')
})

test('The commands of the page start all of it within three minutes, count its requests, and alert', async () => {
  const beganAt = performance.now()
  await shell.run(start ?? '', 180_000)
  process.stdout.write(`up --wait: ${Math.round((performance.now() - beganAt) / 1_000)} s\n`)
  const said = await shell.run(ask ?? '', 60_000)
  expect(said.match(/^ratelimit:/gim)).toHaveLength(4)
  const counted = "SELECT sum(count) FROM weir.decisions WHERE subject = 'acme' AND outcome = 'allow'"
  await until(async () => Number(await clickhouse(counted)) === 4, 30_000)
  await until(() => webhooks.length > 0, 30_000)
  expect(webhooks.map(({ body }) => JSON.parse(body))).toMatchObject([{ data: { subject: 'acme', limit: 'day' } }])
  expect(webhooks[0]?.headers['webhook-signature']).toMatch(/^v1,/)
}, 300_000)

test.each(services)('%s has a read-only root, no capabilities, and no way to more rights', async (service) => {
  const name = `weir-${service}-1`
  const [{ HostConfig, Config }] = JSON.parse(await docker('inspect', name))
  expect([HostConfig.ReadonlyRootfs, HostConfig.CapDrop, Config.User]).toEqual([true, ['ALL'], 'node'])
  // The program is the child of Docker's init.
  const status = await docker('exec', name, 'sh', '-c', 'cat /proc/[0-9]*/status 2>/dev/null || true')
  expect(new Set(status.match(/^Cap(?:Eff|Bnd|Prm):\t.*$/gm))).toEqual(
    new Set(['CapPrm', 'CapEff', 'CapBnd'].map((one) => `${one}:\t0000000000000000`)),
  )
  expect(new Set(status.match(/^NoNewPrivs:\t.*$/gm))).toEqual(new Set(['NoNewPrivs:\t1']))
})

test('A killed ingress and a restarted Kafka under load lose and double nothing that was answered', async () => {
  await allowLoad(shell, 8090, [8080])
  const load = startLoad([8080])
  await load.more(400)
  // From within, as a crash is: what `docker kill` ends is not started again. The shell ends with its container.
  await docker('exec', 'weir-ingress-1', 'sh', '-c', 'kill -KILL -1').catch((error: Error) => error)
  await load.more(400)
  await shell.run('docker compose restart kafka', 120_000)
  await load.more(400)
  const ended = await load.stop()
  expect(ended.failures).toBeGreaterThan(0)
  await expectCounted(ended, clickhouse)
}, 400_000)

test('Prometheus of the profile monitoring scrapes all four services, and has all rules', async () => {
  // Grafana has no stand-in.
  await shell.run('docker compose --profile monitoring up --wait prometheus', 120_000)
  const get = async (path: string): Promise<PrometheusAnswer> =>
    (await fetch(`http://127.0.0.1:9090/api/v1/${path}`)).json() as Promise<PrometheusAnswer>
  const isUp = async () => {
    const { data } = await get('targets')
    return data.activeTargets.length === 4 && data.activeTargets.every(({ health }) => health === 'up')
  }
  expect(await waitUntil(isUp, { deadlineMs: 60_000, everyMs: 1_000 })).toBe(true)
  const { data } = await get('rules')
  const rules = data.groups.flatMap((group) => group.rules)
  expect(rules.length).toBeGreaterThan(60)
  await until(async () => (await get('query?query=weir_ready')).data.result.length === 4)
}, 200_000)

test('The journal is node’s alone, and outlives down and up with what Kafka does not have', async () => {
  const owner = await docker('exec', 'weir-ingress-1', 'stat', '-c', '%U %a', '/var/lib/weir/journal')
  expect(owner.trim()).toBe('node 700')
  await shell.run('docker compose stop kafka', 60_000)
  const ids = await Promise.all(Array.from({ length: 20 }, () => askOnce(8080)))
  await shell.run('docker compose down --timeout 30', 120_000)
  await shell.run('docker compose up --wait', 180_000)
  const sql = `SELECT count() FROM weir.decisions WHERE id IN (${ids.map((id) => `'${id}'`).join(',')})`
  expect(
    await waitUntil(async () => Number(await clickhouse(sql)) === 20, { deadlineMs: 60_000, everyMs: 1_000 }),
  ).toBe(true)
}, 400_000)
