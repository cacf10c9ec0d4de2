import { readFileSync } from 'node:fs'
import { kafkaFrom, localKafka } from '@weir/cli/find-servers.ts'
import { inProject } from '@weir/cli/project.ts'
import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { topics } from '@weir/contracts/topics.ts'
import { createClient } from '@weir/kafka/connect.ts'
import { PartitionAdmin } from '@weir/kafka/partition-admin.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, describe, expect, it } from 'vitest'
import { readMarkdown } from '../repo/rules/markdown.ts'
import { checkMetrics } from '../support/check-metrics.ts'
import { forFile } from '../support/opened.ts'
import { expectHundredOfThousand, expectTwoAlerts } from '../support/pipeline.ts'
import { metricIn } from '../support/read-metric.ts'
import { runWeir, weirUp } from '../support/weir-up.ts'

const weir = await forFile(weirUp())
const { ingress, receiver, demoKey, demoSmallKey, kafka, clickhouse } = weir.line
const pipeline = {
  ingress,
  receiver,
  demoKey: demoKey ?? '',
  demoSmallKey: demoSmallKey ?? '',
  kafka: { brokers: [kafka], clientId: 'smoke', log: createLogger('smoke', 'silent') },
  clickhouse: connectClickhouse(clickhouse, 'smoke'),
}
afterAll(() => pipeline.clickhouse.close())

const pageOf = async (ops: string) => (await fetch(`${ops}/metrics`)).text()

/** Decisions without Redis, and losses of Redis that were found. */
async function troubles() {
  const { ingress = '', console = '' } = weir.line.ops
  return {
    unavailable: metricIn(await pageOf(ingress), 'weir_decision_source_total{source="unavailable"'),
    losses: metricIn(await pageOf(console), 'weir_redis_losses_total'),
  }
}

describe('the whole pipeline', () => {
  it('starts on new data without a decision that missed Redis, and takes the empty Redis for no loss', async () => {
    expect(await troubles()).toEqual({ unavailable: 0, losses: 0 })
  })

  it('admits exactly 100 of 1,000 requests from 8 connections, and counts every one of them in Kafka, raw and rollups', () =>
    expectHundredOfThousand(pipeline))

  it('raises exactly two alerts on a quota of 20 a day, and the receiver verifies exactly two webhooks', () =>
    expectTwoAlerts(pipeline))

  it('says who used what on the command line, as a table and as JSON, and that nothing is wrong', async () => {
    const usage = (...more: string[]) =>
      runWeir(['usage', '--data', weir.dir, '--subject', 'demo-small', '--by', 'subject,outcome', ...more])
    const table = await usage('--order', '-count', '--top', '1')
    expect([table.code, table.stdout.replaceAll(/ +/g, ' ').trimEnd().split('\n')]).toEqual([
      0,
      ['SUBJECT OUTCOME UNITS DECISIONS REFUSED', 'demo-small allow 20 20 0', 'other (1) 0 5 5', 'total 20 25 5'],
    ])
    const { rows, totals } = JSON.parse((await usage('--json')).stdout)
    expect([rows.length, totals]).toEqual([2, { count: 25, allowed: 20, denied: 5, cost: 20 }])
    const wrong = await runWeir(['usage', '--data', weir.dir, '--by', 'colour'])
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('by takes subject')])
    // A process that has no turn for a second does not answer in time, and that is said; it does not stay so.
    const isWell = async () => {
      const { code, stdout } = await runWeir(['status', '--data', weir.dir, '--json'])
      return code === 0 && JSON.parse(stdout)
    }
    const status = await waitUntil(isWell, { deadlineMs: 15_000 })
    expect([status.look, status.warnings, status.processes.map(({ name }: { name: string }) => name)]).toEqual([
      [],
      [],
      ['ingress', 'metering', 'alerting', 'console'],
    ])
    expect((await runWeir(['changes', '--data', weir.dir])).stdout).toMatch(
      /^TIME .*\n.* root +apply a file: \d+ changes/,
    )
  })

  it('shows the metrics of each service in a form that promtool finds nothing wrong with, and among them all that the documents say to watch', async () => {
    const pages = await Promise.all(
      Object.entries(weir.line.ops).map(async ([name, ops]) => [name, await pageOf(ops)] as const),
    )
    const found = pages.map(([name, page]) => [name, metricIn(page, 'weir_ready'), checkMetrics(page)])
    expect(found).toEqual(['ingress', 'metering', 'alerting', 'console'].map((name) => [name, 1, '']))
    const text = readFileSync(inProject('docs', 'monitoring.md'), 'utf8')
    const { rows } = readMarkdown({ path: 'docs/monitoring.md', text })
    const toWatch = rows.flatMap(({ cells }) => (cells.length === 4 ? (cells[1] ?? '').match(/\bweir_\w+/g) : []) ?? [])
    expect(toWatch.length).toBeGreaterThan(25)
    const isShown = (metric: string) => pages.some(([, page]) => page.includes(`# TYPE ${metric} `))
    expect(toWatch.filter((metric) => !isShown(metric))).toEqual([])
    expect((await troubles()).losses).toBe(0)
  })
})

describe('Kafka of `weir up`, all at one address', () => {
  /** What Kafka says to an attempt: its own sentence, which kafkajs may wrap. */
  const answerTo = (attempt: Promise<unknown>): Promise<string> =>
    attempt.then(String, (error: { errors?: unknown[] }) => String(error.errors?.[0] ?? error))
  const refused = expect.stringMatching(/not authorized|authorization failed|lacks [A-Z]\w+ on /i)
  const secured = () => {
    const { kafka: address, kafkaUsername: username, kafkaPassword: password } = weir.line
    return kafkaFrom(localKafka({ address, username: username ?? '', password: password ?? '' }), 'smoke')
  }

  it('takes a record with the password, and neither a record nor a change without it', async () => {
    const sender = createRecordSender(secured())
    await sender.send(topics.alertsDeadLetters, [{ key: 'k', value: 'a test of passwords' }])
    await sender.close()
    const client = createClient(pipeline.kafka)
    const [admin, producer] = [client.admin(), client.producer()]
    await Promise.all([admin.connect(), producer.connect()])
    const acl = { resourceType: 2, resourceName: '*', resourcePatternType: 3, principal: 'User:ANONYMOUS', host: '*' }
    const config = { type: 2, name: topics.policy, configEntries: [{ name: 'retention.ms', value: '1' }] }
    const attempts: Record<string, () => Promise<unknown>> = {
      topic: () => admin.createTopics({ topics: [{ topic: 'another' }] }),
      partitions: () => admin.createPartitions({ topicPartitions: [{ topic: topics.policy, count: 9 }] }),
      deletion: () => admin.deleteTopics({ topics: [topics.policy] }),
      configuration: () => admin.alterConfigs({ validateOnly: false, resources: [config] }),
      rights: () => admin.createAcls({ acl: [{ ...acl, operation: 2, permissionType: 3 }] }),
    }
    for (const topic of Object.values(topics))
      attempts[topic] = () => producer.send({ topic, messages: [{ value: '{}' }] })
    for (const [name, attempt] of Object.entries(attempts))
      expect([name, await answerTo(attempt())]).toEqual([name, refused])
    await Promise.all([admin.disconnect(), producer.disconnect()])
  })

  it('lets no caller without the password into a group of Weir, or commit offsets for one', async () => {
    const owner = createClient(secured()).admin()
    await owner.connect()
    const groups = (await owner.listGroups()).groups.map(({ groupId }) => groupId).filter((id) => /^weir-/.test(id))
    await owner.disconnect()
    expect(groups).toContain('weir-metering')
    for (const groupId of groups) {
      const consumer = createClient(pipeline.kafka).consumer({ groupId })
      const crash = new Promise((resolve) =>
        consumer.on(consumer.events.CRASH, ({ payload }) => resolve(payload.error)),
      )
      await consumer.subscribe({ topic: topics.alerts })
      await consumer.run({ eachMessage: async () => undefined })
      expect([groupId, await answerTo(crash)]).toEqual([groupId, refused])
      await consumer.disconnect()
      const admin = new PartitionAdmin(pipeline.kafka, groupId)
      expect([groupId, await answerTo(admin.commit(topics.alerts, 0, 0n, ''))]).toEqual([groupId, refused])
      await admin.close()
    }
  })
})
