import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { resolve } from 'node:path'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { Redis } from 'ioredis'
import { Kafka, logLevel } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Engine, openEngine, weirImages } from '../support/docker/engine.ts'
import { openPageShell, type PageShell } from '../support/docker/page-shell.ts'
import { allFences } from '../support/docs/fences.ts'
import { startSteadyLoad } from '../support/steady-load.ts'

/** What is read of Prometheus' answers. */
interface PrometheusAnswer {
  readonly data: {
    readonly activeTargets: readonly { readonly health: string }[]
    readonly groups: readonly { readonly rules: readonly unknown[] }[]
    readonly result: readonly unknown[]
  }
}

const root = resolve(import.meta.dirname, '../..')
const services = ['ingress', 'metering', 'alerting', 'console']
/** The commands of docs/deploy/docker.md: secrets and policy, start, requests. */
const [prepare, start, ask] = allFences.filter(({ path }) => path === 'docs/deploy/docker.md').map(({ text }) => text)

let engine: Engine
let shell: PageShell
const opened: Server[] = []
const webhooks: { readonly headers: IncomingMessage['headers']; readonly body: string }[] = []

async function listen(port: number, onBody: (request: IncomingMessage, body: string) => void): Promise<void> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      onBody(request, body)
      response.end('hello')
    })
  })
  server.listen(port, '0.0.0.0')
  await once(server, 'listening')
  opened.push(server)
}

const clickhouse = async (sql: string) => (await fetch('http://127.0.0.1:18123/', { method: 'POST', body: sql })).text()

beforeAll(async () => {
  engine = await openEngine()
  shell = openPageShell(root, engine.env)
  await listen(8070, () => {})
  await listen(8071, (request, body) => webhooks.push({ headers: request.headers, body }))
}, 2_700_000)

afterAll(async () => {
  await shell?.run('docker compose --profile monitoring down --volumes --timeout 30', 120_000)
  shell?.close()
  for (const server of opened) server.close()
  const ids = await engine?.docker('image', 'ls', '--quiet', '--filter', 'label=weir.stand-in=true')
  // Nobody may take them for the vendors' own.
  if (ids) await engine.docker('image', 'rm', '--force', ...new Set(ids.trim().split('\n')))
  await engine?.stop()
}, 300_000)

describe('Weir’s images', () => {
  test.each(weirImages)('%s runs as node, and has no secret, test or history in it', async (image) => {
    const [config] = JSON.parse(await engine.docker('image', 'inspect', image))
    expect(config.Config.User).toBe('node')
    const script =
      "find / -xdev \\( -name .git -o -name .npmrc -o -name '*.test.ts' -o -name '.env*' \\) -not -path '*/node_modules/*' -not -path '/proc/*'; du -sm /weir | cut -f1"
    const found = (await engine.docker('run', '--rm', '--entrypoint', 'sh', image, '-c', script)).trim().split('\n')
    expect(found).toEqual([expect.stringMatching(/^\d+$/)])
    process.stdout.write(`${image}: ${Math.round(config.Size / 1e6)} MB, of it /weir ${found[0]} MB\n`)
  })
})

test('The tests’ servers start in containers where no program of the machine has them', async () => {
  process.env.DOCKER_HOST = engine.env.DOCKER_HOST
  // What would remove containers of a test that was killed is an image of a registry.
  process.env.TESTCONTAINERS_RYUK_DISABLED = 'true'
  const { startContainer } = await import('../support/servers/start-container.ts')
  const asks = {
    redis: async (address: string) => {
      const client = new Redis(address)
      const answer = await client.ping()
      client.disconnect()
      return answer
    },
    kafka: async (address: string) => {
      const admin = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING }).admin()
      await admin.connect()
      const { brokers } = await admin.describeCluster()
      await admin.disconnect()
      return brokers.length
    },
    clickhouse: async (address: string) => (await fetch(`${address}/?query=SELECT+41%2B1`)).text(),
  }
  const answers: unknown[] = []
  for (const name of ['redis', 'kafka', 'clickhouse'] as const) {
    const server = await startContainer(name)
    answers.push(await asks[name](server?.address ?? 'none'))
    await server?.close()
  }
  expect(answers).toEqual(['PONG', 1, '42\n'])
})

describe('docker-compose.yml', () => {
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
    expect(await waitUntil(async () => Number(await clickhouse(counted)) === 4, { deadlineMs: 30_000 })).toBe(true)
    expect(await waitUntil(() => webhooks.length > 0, { deadlineMs: 30_000 })).toBe(true)
    expect(webhooks.map(({ body }) => JSON.parse(body))).toMatchObject([{ data: { subject: 'acme', limit: 'day' } }])
    expect(webhooks[0]?.headers['webhook-signature']).toMatch(/^v1,/)
  }, 300_000)

  test.each(services)('%s has a read-only root, no capabilities, and no way to more rights', async (service) => {
    const name = `weir-${service}-1`
    const [{ HostConfig, Config }] = JSON.parse(await engine.docker('inspect', name))
    expect([HostConfig.ReadonlyRootfs, HostConfig.CapDrop, Config.User]).toEqual([true, ['ALL'], 'node'])
    // The program is the child of Docker's init.
    const status = await engine.docker('exec', name, 'sh', '-c', 'cat /proc/[0-9]*/status 2>/dev/null || true')
    expect(new Set(status.match(/^Cap(?:Eff|Bnd|Prm):\t.*$/gm))).toEqual(
      new Set(['CapPrm', 'CapEff', 'CapBnd'].map((one) => `${one}:\t0000000000000000`)),
    )
    expect(new Set(status.match(/^NoNewPrivs:\t.*$/gm))).toEqual(new Set(['NoNewPrivs:\t1']))
  })

  test('A killed ingress and a restarted Kafka under load lose and double nothing that was answered', async () => {
    const policy = `version: 1
limits: { all: { algorithm: fixed_window, size: 1000000, window: 1m } }
plans: { free: { limits: [all] } }
upstreams: { api: { url: "http://host.docker.internal:8070", hosts: ["*"] } }
subjects: { load: { plan: free, keys: [{ sha256: "$(printf %s load | sha256sum | cut -d ' ' -f 1)" }] } }`
    const put = `curl -sf -X PUT http://127.0.0.1:8090/v1/policy -H "Authorization: Bearer $WEIR_ADMIN_TOKEN" -H 'Content-Type: application/yaml' --data-binary @- <<END\n${policy}\nEND`
    await shell.run(put, 30_000)
    const asked = () => fetch('http://127.0.0.1:8080/', { headers: { 'x-api-key': 'load' } })
    await waitUntil(async () => (await asked()).status === 200, { deadlineMs: 10_000 })
    const answered: string[] = []
    const load = startSteadyLoad({
      url: 'http://127.0.0.1:8080/',
      headers: { 'x-api-key': 'load' },
      requestsPerSecond: 200,
      connections: 16,
      onAnswer: ({ headers }) => answered.push(String(headers['weir-decision'] ?? 'none')),
    })
    const more = async (count: number) => {
      const from = answered.length
      expect(await waitUntil(() => answered.length >= from + count, { deadlineMs: 60_000 })).toBe(true)
    }
    await more(400)
    // From within, as a crash is: what `docker kill` ends is not started again. The shell ends with its container.
    await engine.docker('exec', 'weir-ingress-1', 'sh', '-c', 'kill -KILL -1').catch((error: Error) => error)
    await more(400)
    await shell.run('docker compose restart kafka', 120_000)
    await more(400)
    await load.stop()
    const ids = new Set(answered.filter((id) => id !== 'none'))
    const rows = async () =>
      (await clickhouse("SELECT id FROM weir.decisions WHERE subject = 'load' FORMAT TSV")).trim().split('\n')
    const counts = async () => {
      const sql = `SELECT count(), uniqExact(id), (SELECT sum(count) FROM weir.usage_15m WHERE subject = 'load')
        FROM weir.decisions WHERE subject = 'load' FORMAT TSV`
      return (await clickhouse(sql)).trim().split('\t').map(Number)
    }
    const isCounted = async () => {
      const found = new Set(await rows())
      return [...ids].every((id) => found.has(id))
    }
    expect(await waitUntil(isCounted, { deadlineMs: 90_000, everyMs: 1_000 })).toBe(true)
    const [all = 0, distinct, summed] = await counts()
    expect([distinct, summed]).toEqual([all, all])
    process.stdout.write(
      `answered with an id ${ids.size}, without ${answered.length - ids.size}, no answer ${load.failures.length}; rows ${all}, sum of the rollup ${summed}\n`,
    )
    expect(load.failures.length).toBeGreaterThan(0)
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
    expect(
      await waitUntil(async () => (await get('query?query=weir_ready')).data.result.length === 4, {
        deadlineMs: 60_000,
      }),
    ).toBe(true)
  }, 200_000)

  test('The journal is node’s alone, and outlives down and up with what Kafka does not have', async () => {
    const owner = await engine.docker('exec', 'weir-ingress-1', 'stat', '-c', '%U %a', '/var/lib/weir/journal')
    expect(owner.trim()).toBe('node 700')
    await shell.run('docker compose stop kafka', 60_000)
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => fetch('http://127.0.0.1:8080/', { headers: { 'x-api-key': 'load' } })),
    )
    const ids = answers.map(({ headers }) => headers.get('weir-decision') ?? 'none')
    await shell.run('docker compose down --timeout 30', 120_000)
    await shell.run('docker compose up --wait', 180_000)
    const sql = `SELECT count() FROM weir.decisions WHERE id IN (${ids.map((id) => `'${id}'`).join(',')})`
    expect(
      await waitUntil(async () => Number(await clickhouse(sql)) === 20, { deadlineMs: 60_000, everyMs: 1_000 }),
    ).toBe(true)
  }, 400_000)
})
