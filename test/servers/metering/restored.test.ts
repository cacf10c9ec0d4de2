import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import { expect, onTestFinished, test } from 'vitest'
import { forFile } from '../../support/opened.ts'
import { clusterServer, isOnCluster } from '../../support/servers/cluster-server.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { until } from '../../support/until.ts'
import { newJournal, once, openMeteringStack, settled } from './open-metering.ts'

const stack = await forFile(
  openMeteringStack(undefined, () => startServer(isOnCluster ? clusterServer() : clickhouseServer)),
)

async function start() {
  const one = await stack.start()
  onTestFinished(() => one.kill('SIGKILL'))
  return one
}

const run = promisify(execFile)

test('ClickHouse is restored from a copy older than a declared block: what the copy lacks is read again, and counts once', async () => {
  const before = await start()
  const journals = [newJournal('one'), newJournal('other')]
  const send = async (count: number) => {
    for (const [partition, journal] of journals.entries()) await stack.send(journal.take(count, partition), partition)
  }
  const expectAll = async (count: number) => {
    for (const { subject } of journals) expect(await settled(stack, subject, count)).toEqual(once(count))
  }
  await send(100)
  await expectAll(100)
  const [data, copy] = [join(stack.clickhouse.dir, 'data'), join(stack.clickhouse.dir, 'copy')]
  await stack.clickhouse.kill('SIGTERM')
  await run('cp', ['-a', data, copy])
  await stack.clickhouse.restart()
  await send(200)
  await expectAll(300)

  await stack.clickhouse.kill('SIGKILL')
  await send(50)
  const isWaiting = async () => (await before.ready()).text.includes('waits: ')
  await until(isWaiting, 40_000)
  await before.kill('SIGTERM')
  await rm(data, { recursive: true })
  await run('cp', ['-a', copy, data])
  await stack.clickhouse.restart()

  const after = await start()
  await expectAll(350)
  await send(50)
  await expectAll(400)
  expect(after.said()).not.toContain('sequence numbers never arrived')
})
