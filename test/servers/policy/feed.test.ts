import { randomUUID } from 'node:crypto'
import { encodeEntityChange, encodeReset } from '@weir/contracts/policy.v1.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { deleteEntity, putEntity } from '@weir/policy/entities.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, inject, test } from 'vitest'
import { forTest } from '../../support/opened.ts'
import {
  changesOf,
  createPolicyTopic,
  makePolicyTopic,
  openFeed,
  openWriter,
  policyOfSize,
  sizeChange,
  sizeInForce,
  subjectChange,
  wholeChange,
} from '../../support/policy-topic.ts'
import { kafkaOptions, withAdmin } from '../../support/servers/kafka-topics.ts'
import { until } from '../../support/until.ts'

const options = () => kafkaOptions(inject('kafkaBrokers'))
const seed = (size: number) => () => requirePolicy(policyOfSize(size), 'test.yaml')
async function topicWithPolicy(size: number) {
  const topic = await createPolicyTopic(options())
  const writer = openWriter(options(), topic)
  await writer.publish(wholeChange(changesOf(policyOfSize(size))))
  return { topic, writer }
}

const deleteTopic = (topic: string) => withAdmin(options(), (admin) => admin.deleteTopics({ topics: [topic] }))

test('the policy of the topic is in force at the start, whatever the file says', async () => {
  const { topic } = await topicWithPolicy(7)
  const feed = openFeed(options(), topic, { seed: seed(1) })
  const policy = await feed.firstPolicy()
  expect(policy.limits.get('minute')?.size).toBe(7)
  expect(policy.subjects.get('acme')?.plan.name).toBe('free')
  expect(feed.status).toMatchObject({ source: 'topic', waitingFor: '', refused: undefined })
  expect(feed.status.ageMs).toBeLessThan(5_000)
})

test('the policy of the file is in force for as long as the topic holds none, or is not there', async () => {
  const topic = `test.policy.${randomUUID()}`
  const feed = openFeed(options(), topic, { seed: seed(1) })
  expect((await feed.firstPolicy()).limits.get('minute')?.size).toBe(1)
  expect(feed.status).toMatchObject({ source: 'seed', waitingFor: expect.stringContaining(topic) })
  await makePolicyTopic(options(), topic)
  await until(() => feed.status.waitingFor === '')
  expect([feed.status.source, sizeInForce(feed), feed.state?.size]).toEqual(['seed', 1, 0])
  await openWriter(options(), topic).publish(wholeChange(changesOf(policyOfSize(2))))
  await until(() => sizeInForce(feed) === 2)
  expect(feed.status.source).toBe('topic')
})

test('without a topic, a snapshot and a file it waits, and takes the first policy that comes', async () => {
  const topic = await createPolicyTopic(options())
  const feed = openFeed(options(), topic)
  await until(() => feed.status.waitingFor === '')
  expect([feed.policy, feed.status.source]).toEqual([undefined, 'none'])
  await openWriter(options(), topic).publish(wholeChange(changesOf(policyOfSize(3))))
  expect((await feed.firstPolicy()).limits.get('minute')?.size).toBe(3)
})

test('a change is not in force, not even in parts, before the record that ends it', async () => {
  const { topic, writer } = await topicWithPolicy(1)
  const feed = openFeed(options(), topic)
  await feed.firstPolicy()
  const messages = wholeChange([sizeChange(50), subjectChange('new')])
  const offset = await writer.publish(messages.slice(0, -1))
  expect(await feed.reached(offset, 10_000)).toBe(true)
  const late = openFeed(options(), topic)
  await late.firstPolicy()
  for (const one of [feed, late]) {
    expect([sizeInForce(one), one.policy?.subjects.get('new')]).toEqual([1, undefined])
  }
  const end = await writer.publish(messages.slice(-1))
  for (const one of [feed, late]) {
    expect(await one.reached(end, 10_000)).toBe(true)
    expect([sizeInForce(one), one.policy?.subjects.get('new')?.id]).toEqual([50, 'new'])
  }
})

test('a change that does not compile is left out whole and told; later ones go on, and a repaired one ends the warning', async () => {
  const { topic, writer } = await topicWithPolicy(1)
  const feed = openFeed(options(), topic)
  const before = await feed.firstPolicy()
  const wrong = await writer.publish(wholeChange([sizeChange(9), deleteEntity('plan', 'free')]))
  expect(await feed.reached(wrong, 10_000)).toBe(true)
  expect(feed.policy).toBe(before)
  expect(feed.counters).toMatchObject({ refusedChanges: 1 })
  expect(feed.status.refused).toContain('limit/minute')
  const fine = await writer.publish(wholeChange([sizeChange(10)]))
  expect(await feed.reached(fine, 10_000)).toBe(true)
  expect(sizeInForce(feed)).toBe(10)
  expect(feed.status.refused).toContain('plan/free')
  const late = openFeed(options(), topic)
  expect((await late.firstPolicy()).limits.get('minute')?.size).toBe(10)
  expect(late.status.refused).toContain('plan/free')
  const plan = changesOf(policyOfSize(1)).filter(({ kind }) => kind === 'plan')
  expect(await feed.reached(await writer.publish(wholeChange(plan)), 10_000)).toBe(true)
  expect(feed.status.refused).toBeUndefined()
})

test('records that cannot be read are counted and passed over', async () => {
  const { topic, writer } = await topicWithPolicy(1)
  const feed = openFeed(options(), topic)
  await feed.firstPolicy()
  const sender = await forTest(createRecordSender(options()))
  await sender.send(topic, [
    { key: 'limit/minute', value: 'no JSON' },
    { key: 'nothing', value: '{}' },
    { key: 'change/one', value: '{"v":1}' },
    { key: 'change/two', value: Buffer.from([0xff, 0xfe]) },
  ])
  const offset = await writer.publish(wholeChange([sizeChange(4)]))
  expect(await feed.reached(offset, 10_000)).toBe(true)
  expect([sizeInForce(feed), feed.counters.unreadableRecords]).toEqual([4, 4])
})

test('subjects and keys come and go without a new policy object; resets are told; audit records come in order', async () => {
  const { topic, writer } = await topicWithPolicy(1)
  const audits: string[] = []
  const feed = openFeed(options(), topic, { onAudit: ({ id }) => audits.push(id) })
  const policy = await feed.firstPolicy()
  const news: { isReplaced: boolean; resets: readonly string[] }[] = []
  feed.onChange(({ isReplaced, resets }) => news.push({ isReplaced, resets }))
  const sha256 = 'a'.repeat(64)
  const key = { kind: 'key', name: sha256, origin: 'admin', position: undefined } as const
  await writer.publish(wholeChange([putEntity({ ...key, body: { subject: 'acme', id: 'k' } })]))
  await writer.publish(wholeChange([deleteEntity('key', sha256)]))
  await until(() => news.length === 2)
  expect(policy.keys.get(sha256)).toBeUndefined()
  const offset = await writer.publish(wholeChange([], encodeReset('acme')))
  expect(await feed.reached(offset, 10_000)).toBe(true)
  expect(feed.policy).toBe(policy)
  expect(news).toEqual([
    { isReplaced: false, resets: [] },
    { isReplaced: false, resets: [] },
    { isReplaced: false, resets: ['acme'] },
  ])
  expect(audits).toHaveLength(4)
  expect(audits.toSorted()).toEqual(audits)
})

test('a topic that was created again is read from its beginning; while it is empty the policy before stays', async () => {
  const { topic } = await topicWithPolicy(1)
  const audits: string[] = []
  const onAuditRestart = () => {
    audits.length = 0
  }
  const feed = openFeed(options(), topic, { onAudit: ({ id }) => audits.push(id), onAuditRestart })
  await feed.firstPolicy()
  expect(audits).toHaveLength(1)
  await deleteTopic(topic)
  await until(() => feed.status.waitingFor !== '')
  expect(sizeInForce(feed)).toBe(1)
  await makePolicyTopic(options(), topic)
  await until(() => feed.status.waitingFor === '')
  expect([sizeInForce(feed), feed.state?.size, audits]).toEqual([1, 0, []])
  // As long as the topic before, so that no offset tells the two apart.
  await openWriter(options(), topic).publish(wholeChange(changesOf(policyOfSize(2))))
  await until(() => sizeInForce(feed) === 2)
  expect(audits).toHaveLength(1)
})

test('a compacted topic is read to its end: what is compacted away holds up nobody', async () => {
  const { topic, writer } = await topicWithPolicy(1)
  // The records that end a batch and the topic are deleted ones.
  const offset = await writer.publish([...wholeChange([sizeChange(6)]), { key: 'change/old', value: null }])
  const feed = openFeed(options(), topic)
  await feed.firstPolicy()
  expect([sizeInForce(feed), await feed.reached(offset, 10_000)]).toEqual([6, true])
})

test('a follower leaves no consumer group behind, because it makes none', async () => {
  const { topic } = await topicWithPolicy(1)
  const groups = async () =>
    (await withAdmin(options(), (admin) => admin.listGroups())).groups.map(({ groupId }) => groupId)
  const before = await groups()
  const feed = openFeed(options(), topic)
  await feed.firstPolicy()
  expect((await groups()).filter((one) => !before.includes(one))).toEqual([])
})

test('an unreadable file matters only where it is needed', async () => {
  const { topic } = await topicWithPolicy(1)
  const broken = () => requirePolicy('version: 2', 'test.yaml')
  expect(await openFeed(options(), topic, { seed: broken }).firstPolicy()).toBeDefined()
  const empty = await createPolicyTopic(options())
  await expect(openFeed(options(), empty, { seed: broken }).firstPolicy()).rejects.toMatchObject({
    code: 'POLICY_INVALID',
  })
})

test('a change of 5,000 subjects and keys is one batch', async () => {
  const { topic, writer } = await topicWithPolicy(1)
  const feed = openFeed(options(), topic)
  await feed.firstPolicy()
  const many = Array.from({ length: 5_000 }, (_, at) => subjectChange(`subject-${at}`))
  const offset = await writer.publish(wholeChange(many))
  expect(await feed.reached(offset, 30_000)).toBe(true)
  expect(feed.policy?.subjects.size).toBe(5_001)
  expect(encodeEntityChange(many[0] ?? deleteEntity('plan', '')).key).toBe('subject/subject-0')
})
