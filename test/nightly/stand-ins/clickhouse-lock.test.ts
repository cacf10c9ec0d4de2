import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { afterAll, expect, it } from 'vitest'
import { startClickhouse } from '../../support/servers/clickhouse.ts'
import { until } from '../../support/until.ts'

const clickhouse = await startClickhouse()
afterAll(() => clickhouse.close())

async function startSecond(dir: string, port: number) {
  const { command } = await clickhouseServer.plan({
    dir,
    ports: [port],
    progress: () => undefined,
    environment: process.env,
  })
  const [program, ...args] = command
  return spawnSync(program, args, { encoding: 'utf8', timeout: 30_000 })
}

it('keeps a second process out of the data directory, naming it in one line', async () => {
  const dir = join(clickhouse.server.dir, 'data')
  const [port = 0] = await freePorts(1)
  const { status, stderr, stdout } = await startSecond(dir, port)
  expect([status, stdout]).toEqual([1, ''])
  expect(stderr).toBe(
    `clickhouse: the data directory ${dir} is in use by process ${clickhouse.server.pid()}; stop it, or give another directory with --path\n`,
  )
  expect(await clickhouse.ask('SELECT 1')).toBe('1')
})

it('says in one line that the port is taken, and leaves nothing half started', async () => {
  const port = Number(new URL(clickhouse.url).port)
  const { status, stderr, stdout } = await startSecond(join(clickhouse.server.dir, 'other'), port)
  expect([status, stdout]).toEqual([1, ''])
  expect(stderr).toBe(`clickhouse: port ${port} on 127.0.0.1 is in use by another program; give another with --port\n`)
})

it('ends a SIGTERM with exit code 0', async () => {
  const [port = 0] = await freePorts(1)
  const plan = await clickhouseServer.plan({
    dir: join(clickhouse.server.dir, 'third'),
    ports: [port],
    progress: () => undefined,
    environment: process.env,
  })
  const child = spawnBound(plan.command, { stdio: 'ignore' })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  await until(() => plan.ready(), 30_000)
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})
