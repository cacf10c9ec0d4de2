import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { allowLoad, expectCounted, startLoad } from '../support/docker/counted-load.ts'
import type { PageShell } from '../support/docker/page-shell.ts'
import { docker, openHelloServer, openShell, showLogs } from '../support/docker/tier.ts'
import { allFences } from '../support/docs/fences.ts'

const [prepare = ''] = allFences.filter(({ path }) => path === 'docs/deploy/docker.md').map(({ text }) => text)
const ports = [8080, 8180]

let shell: PageShell
const opened: { close(): void }[] = []

beforeAll(async () => {
  shell = openShell()
  opened.push(shell, await openHelloServer(8070))
  await shell.run(`${prepare}\nexport COMPOSE_FILE=infra/examples/ha/docker-compose.yml`, 10_000)
})

afterEach(({ task }) => showLogs(task, shell))

afterAll(async () => {
  await shell.run('docker compose down --volumes --timeout 30', 180_000)
  for (const one of opened) one.close()
}, 190_000)

const clickhouse = (sql: string) =>
  docker('exec', 'weir-ha-clickhouse-1', 'wget', '-qO-', `--post-data=${sql}`, 'http://127.0.0.1:8123/')

test('The three zones of infra/examples/ha start, and count all answers while a broker and a master of Redis die', async () => {
  const beganAt = performance.now()
  await shell.run('docker compose up --wait', 480_000)
  process.stdout.write(`up --wait: ${Math.round((performance.now() - beganAt) / 1_000)} s\n`)
  await allowLoad(shell, 8190, ports)
  const load = startLoad(ports)
  await load.more(400)
  await shell.run('docker compose kill kafka-2 redis-1', 60_000)
  await load.more(2_000)
  const ended = await load.stop()
  expect(ended.ids.size).toBeGreaterThan(2_400)
  await expectCounted(ended, clickhouse)
}, 900_000)
