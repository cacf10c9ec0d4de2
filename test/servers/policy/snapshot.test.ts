import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { PolicyFeed } from '@weir/policy-feed/policy-feed.ts'
import { readSnapshot, renewSnapshot } from '@weir/policy-feed/snapshot-file.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { expect, inject, test } from 'vitest'
import { folderForTest, forTest } from '../../support/opened.ts'
import {
  changesOf,
  createPolicyTopic,
  openFeed,
  openWriter,
  policyOfSize,
  sizeChange,
  sizeInForce,
  subjectChange,
  wholeChange,
} from '../../support/policy-topic.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { until } from '../../support/until.ts'

const away = kafkaOptions('127.0.0.1:1')
/** A snapshot of a topic with a policy of size 5 and some subjects, as a stopped process leaves it. */
async function leaveSnapshot(subjects = 0) {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const snapshotPath = join(await folderForTest('policy'), 'policy.snapshot')
  const topic = await createPolicyTopic(options)
  const writer = openWriter(options, topic)
  await writer.publish(wholeChange(changesOf(policyOfSize(5))))
  const many = Array.from({ length: subjects }, (_, at) => subjectChange(`s${at}`))
  if (many.length > 0) await writer.publish(wholeChange(many))
  const feed = new PolicyFeed({ ...options, topic, snapshotPath, seed: () => undefined })
  await feed.firstPolicy()
  await feed.close()
  return { options, topic, writer, snapshotPath }
}

test('without Kafka the snapshot is in force, whatever the file says', async () => {
  const { topic, snapshotPath } = await leaveSnapshot(100)
  const seed = () => requirePolicy(policyOfSize(1), 'test.yaml')
  const feed = openFeed(away, topic, { snapshotPath, seed, startTimeoutMs: 300 })
  const policy = await feed.firstPolicy()
  expect([policy.limits.get('minute')?.size, policy.subjects.size]).toEqual([5, 101])
  expect(feed.status).toMatchObject({ source: 'snapshot', waitingFor: expect.stringContaining('127.0.0.1:1') })
  expect(feed.status.ageMs).toBeLessThan(60_000)
})

test('without Kafka and a snapshot the file is in force, of unknown age', async () => {
  const seed = () => requirePolicy(policyOfSize(1), 'test.yaml')
  const feed = openFeed(away, 'test', { seed, startTimeoutMs: 300 })
  expect((await feed.firstPolicy()).limits.get('minute')?.size).toBe(1)
  expect(feed.status).toMatchObject({ source: 'seed', ageMs: Number.POSITIVE_INFINITY })
})

test('a start with a snapshot reads on after it: what it does not have is in force before the first policy is given out', async () => {
  const { options, topic, writer, snapshotPath } = await leaveSnapshot()
  for (let size = 6; size <= 60; size += 1) await writer.publish(wholeChange([sizeChange(size)]))
  const feed = openFeed(options, topic, { snapshotPath })
  expect((await feed.firstPolicy()).limits.get('minute')?.size).toBe(60)
  expect(feed.counters.changes).toBe(55)
})

test('a snapshot of another topic is no place to read on from', async () => {
  const { options, snapshotPath } = await leaveSnapshot(10)
  const topic = await createPolicyTopic(options)
  const writer = openWriter(options, topic)
  for (let size = 1; size <= 30; size += 1) await writer.publish(wholeChange(changesOf(policyOfSize(size))))
  const feed = openFeed(options, topic, { snapshotPath })
  const policy = await feed.firstPolicy()
  expect([policy.limits.get('minute')?.size, policy.subjects.size]).toEqual([30, 1])
})

test('with a topic that was created again and is empty the snapshot is in force where there is no file', async () => {
  const { options, snapshotPath } = await leaveSnapshot(10)
  const topic = await createPolicyTopic(options)
  const feed = openFeed(options, topic, { snapshotPath })
  const policy = await feed.firstPolicy()
  expect([policy.limits.get('minute')?.size, policy.subjects.size, feed.status.source]).toEqual([5, 11, 'snapshot'])
  await openWriter(options, topic).publish(wholeChange(changesOf(policyOfSize(9))))
  await until(() => feed.policy?.subjects.size === 1)
  expect([feed.policy?.limits.get('minute')?.size, feed.status.source]).toEqual([9, 'topic'])
})

test('a snapshot that a wrong clock dates into the future is no place to read on from: a deletion may be gone by now', async () => {
  const { options, topic, writer, snapshotPath } = await leaveSnapshot(1)
  await renewSnapshot(snapshotPath, Date.now() + 7 * 86_400_000)
  await writer.publish(wholeChange([sizeChange(8)]))
  const feed = openFeed(options, topic, { snapshotPath })
  await feed.firstPolicy()
  // Read from the beginning, everything is one step; read on, the change would count.
  expect([feed.counters.changes, sizeInForce(feed)]).toEqual([0, 8])
})

test('a snapshot that is torn or foreign is left out', async () => {
  const { topic, snapshotPath } = await leaveSnapshot(10)
  const whole = await readFile(snapshotPath, 'utf8')
  const lines = whole.split('\n')
  const broken = [
    '',
    'no snapshot\n',
    whole.slice(0, -20),
    lines.slice(0, 5).join('\n'),
    [...lines.slice(0, 3), ...lines.slice(4)].join('\n'),
  ]
  for (const text of broken) {
    await writeFile(snapshotPath, text)
    const seed = () => requirePolicy(policyOfSize(1), 'test.yaml')
    const feed = openFeed(away, topic, { snapshotPath, seed, startTimeoutMs: 100 })
    expect((await feed.firstPolicy()).limits.get('minute')?.size).toBe(1)
  }
})

test('a snapshot written while changes come is exact at its end', async () => {
  const { options, topic, writer, snapshotPath } = await leaveSnapshot(5_000)
  const feed = new PolicyFeed({ ...options, topic, snapshotPath, seed: () => undefined })
  await feed.firstPolicy()
  const written = (await stat(snapshotPath)).ino
  let size = 5
  await until(async () => {
    size += 1
    const names = Array.from({ length: 50 }, (_, at) => `s${(size * 50 + at) % 5_000}`)
    const anchor = (size % 28) + 1
    await writer.publish(wholeChange([sizeChange(size), ...names.map((name) => subjectChange(name, { anchor }))]))
    return (await stat(snapshotPath)).ino !== written
  })
  await until(() => sizeInForce(feed) === size)
  await feed.close()
  const again = openFeed(away, topic, { snapshotPath, startTimeoutMs: 100 })
  await again.firstPolicy()
  expect(sizeInForce(again)).toBe(size)
  const anchors = (one: PolicyFeed) => [...(one.policy?.subjects.values() ?? [])].map(({ id, anchor }) => [id, anchor])
  expect(anchors(again).sort()).toEqual(anchors(feed).sort())
})

test('a process killed while it writes a snapshot leaves the old one or the new one, whole', async () => {
  const path = join(await folderForTest('policy'), 'policy.snapshot')
  const program = fileURLToPath(new URL('../../support/write-snapshots.ts', import.meta.url))
  for (let round = 0; round < 10; round += 1) {
    const child = spawnBound([process.execPath, program, path], { stdio: 'inherit' })
    const ended = new Promise<void>((done) => child.once('exit', () => done()))
    // Killed at another moment of a write each time: what is written grows by the round.
    const before = (await readFile(path).catch(() => Buffer.alloc(0))).length
    await until(async () => (await readFile(path).catch(() => Buffer.alloc(0))).length !== before)
    child.kill('SIGKILL')
    await ended
    const read = await readSnapshot(path)
    if (read === undefined) throw new Error('there is no snapshot')
    const subjects = [...read.entities()].filter(({ kind }) => kind === 'subject')
    expect(BigInt(subjects.length)).toBe(read.checkpoint.offset)
  }
})

test('Kafka killed and started again: the policy stays, its age grows, and changes made meanwhile come', async () => {
  const server = await forTest(startServer(kafkaServer))
  const options = kafkaOptions(server.address)
  const topic = await createPolicyTopic(options)
  const writer = openWriter(options, topic)
  await writer.publish(wholeChange(changesOf(policyOfSize(1))))
  const feed = openFeed(options, topic)
  await feed.firstPolicy()
  await server.kill('SIGKILL')
  await until(() => feed.status.waitingFor.includes(server.address))
  expect(sizeInForce(feed)).toBe(1)
  await expect(writer.publish(wholeChange([sizeChange(2)]))).rejects.toMatchObject({ code: 'KAFKA_UNAVAILABLE' })
  await until(() => feed.status.ageMs > 1_000)
  await server.restart()
  await writer.publish(wholeChange([sizeChange(3)]))
  await until(() => sizeInForce(feed) === 3)
  await until(() => feed.status.waitingFor === '' && feed.status.ageMs < 1_000)
})
