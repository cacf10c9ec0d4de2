import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { createTopic, kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { readTopic } from '../../support/servers/read-topic.ts'

/** Starts the local Kafka on `dir` and on ports that are free now. */
async function startOn(dir: string) {
  const plan = await kafkaServer.plan({ dir, ports: await freePorts(2), progress: () => {} })
  const child = spawnBound(plan.command, { stdio: 'ignore', env: { ...process.env, ...plan.env }, cwd: plan.cwd })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    await ended
  }
  onTestFinished(() => stop('SIGKILL'))
  expect(await waitUntil(() => plan.ready(), { deadlineMs: 60_000 })).toBe(true)
  return { address: plan.address, stop }
}

test.each(['SIGKILL', 'SIGTERM'] as const)('after %s it goes on with its data on other ports', async (signal) => {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-kafka-ports-'))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  const first = await startOn(dir)
  const before = kafkaOptions(first.address)
  const topic = await createTopic(before, 2)
  const sender = createRecordSender(before)
  await sender.send(topic, [{ key: 'k', value: 'kept', headers: { h: 'v' } }])
  await sender.close()
  await first.stop(signal)
  const second = await startOn(dir)
  expect(second.address).not.toBe(first.address)
  const records = await readTopic(kafkaOptions(second.address), topic, (read) => read.length > 0)
  expect(records.map(({ value, headers }) => [value?.toString(), headers])).toEqual([['kept', { h: 'v' }]])
})

test('nothing is ready where no Kafka listens, and asking never throws', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-kafka-none-'))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  const plan = await kafkaServer.plan({ dir, ports: await freePorts(2), progress: () => {} })
  expect(await plan.ready()).toBe(false)
})
