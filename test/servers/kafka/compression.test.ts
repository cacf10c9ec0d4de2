import { closeSync, globSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { inProject } from '@weir/cli/project.ts'
import { type ClickHouseClient, connectClickhouse } from '@weir/clickhouse/connect.ts'
import { topics } from '@weir/contracts/topics.ts'
import { createClient } from '@weir/kafka/connect.ts'
import { kafkajs } from '@weir/kafka/wire/kafkajs-fixes.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Stack, startStack } from '../../support/failure/stack.ts'
import { readTopic } from '../../support/servers/read-topic.ts'

const read = [topics.decisions, topics.outcomes, topics.policy, topics.alerts, topics.deliveries]

let stack: Stack
let clickhouse: ClickHouseClient
let admin: ReturnType<ReturnType<typeof createClient>['admin']>
beforeAll(async () => {
  stack = await startStack({ oneOfEach: true, policy: readFileSync(inProject('weir.yaml'), 'utf8') })
  clickhouse = connectClickhouse(stack.addresses.clickhouse, 'test')
  admin = createClient(stack.kafka).admin()
  await admin.connect()
}, 180_000)
afterAll(async () => {
  await admin?.disconnect()
  await clickhouse?.close()
  await stack?.close()
})

/** Batches of a topic's partitions as they are on Kafka's disk: where each begins and ends, and its codec. */
function batchesOf(topic: string) {
  return globSync(join(stack.dir, `**/${topic}-*/*.log`)).flatMap((file) => {
    const bytes = readFileSync(file)
    const found: { file: string; start: number; end: number; codec: number; firstOffset: number; records: number }[] =
      []
    for (let start = 0; start + 61 <= bytes.length; ) {
      const end = start + 12 + bytes.readInt32BE(start + 8)
      const [codec, firstOffset] = [bytes.readInt16BE(start + 21) & 7, Number(bytes.readBigInt64BE(start))]
      found.push({ file, start, end, codec, firstOffset, records: bytes.readInt32BE(start + 57) })
      start = end
    }
    return found
  })
}

/** How many batches of this codec each topic has. */
const batches = (codec: number) => read.map((topic) => batchesOf(topic).filter((one) => one.codec === codec).length)

const settings = () =>
  admin.describeConfigs({
    includeSynonyms: false,
    resources: read.map((name) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name })),
  })

/** Of topics all settings are sent, as one that is left out falls back to the broker's. */
async function setCompression(codec: string, where: 'topic' | 'broker'): Promise<void> {
  const { TOPIC, BROKER } = kafkajs.ConfigResourceTypes
  const own = await settings()
  const ofTopic = where === 'topic' ? [{ name: 'compression.type', value: codec }] : []
  await admin.alterConfigs({
    validateOnly: false,
    resources: [
      ...own.resources.map(({ resourceName, configEntries }) => ({
        type: TOPIC,
        name: resourceName,
        configEntries: [
          ...configEntries
            .filter(
              ({ configName, isDefault, configSource }) =>
                !isDefault && configSource === 1 && configName !== 'compression.type',
            )
            .map(({ configName, configValue }) => ({ name: configName, value: configValue })),
          ...ofTopic,
        ],
      })),
      {
        type: BROKER,
        name: '1',
        configEntries: [{ name: 'compression.type', value: where === 'broker' ? codec : 'producer' }],
      },
    ],
  })
  const isSet = ({ configName, configValue }: { configName: string; configValue: string }) =>
    configName === 'compression.type' && configValue === codec
  const areSet = async () => (await settings()).resources.every(({ configEntries }) => configEntries.some(isSet))
  expect(await waitUntil(areSet, { deadlineMs: 10_000, everyMs: 50 })).toBe(true)
}

/** Two changes of the policy. Resolves to the subject's key. */
async function addSubject(subject: string): Promise<string> {
  const change = async (method: string, path: string, body: object) => {
    const answer = await fetch(`http://127.0.0.1:${stack.ports.console}/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${stack.secrets.adminToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    expect(answer.status).toBeLessThan(300)
    return (await answer.json()) as { key: string }
  }
  await change('PUT', `subjects/${subject}`, { plan: 'trial' })
  const { key } = await change('POST', `subjects/${subject}/keys`, {})
  return key
}

const ask = async (key: string) =>
  (await fetch(`http://127.0.0.1:${stack.ports.ingress}/x`, { headers: { 'x-api-key': key } })).status

async function countsOf(subject: string) {
  const query = `SELECT toUInt32(sum(count)) AS counted, toUInt32(sumIf(count, outcome = 'allow')) AS allowed,
    (SELECT toUInt32(sum(count)) FROM weir.usage_15m WHERE subject = '${subject}') AS inRollup,
    (SELECT toUInt32(count()) FROM weir.outcomes WHERE subject = '${subject}') AS outcomes,
    (SELECT toUInt32(count()) FROM weir.alerts FINAL WHERE subject = '${subject}') AS alerts,
    (SELECT toUInt32(uniqExact(alert_id, endpoint)) FROM weir.deliveries
      WHERE subject = '${subject}' AND outcome = 'delivered') AS delivered
    FROM weir.decisions WHERE subject = '${subject}'`
  const [row] = await (await clickhouse.query({ query, format: 'JSONEachRow' })).json<Record<string, number>>()
  return row
}
const everything = { counted: 25, allowed: 20, inRollup: 25, outcomes: 20, alerts: 2, delivered: 2 }

test.each(
  ['gzip', 'snappy', 'lz4', 'zstd'].flatMap((name, at) => [
    { name, codec: at + 1, where: 'topic' as const },
    { name, codec: at + 1, where: 'broker' as const },
  ]),
)(
  '$name set on the $where: decisions and outcomes are counted, alerts delivered, the policy in force',
  async ({ name, codec, where }) => {
    const subject = `${name}-${where}`
    const before = batches(codec)
    await setCompression(name, where)
    const key = await addSubject(subject)
    expect(await waitUntil(async () => (await ask(key)) === 200, { deadlineMs: 20_000, everyMs: 50 })).toBe(true)
    for (let sent = 1; sent < 25; sent += 1) expect(await ask(key)).toBe(sent < 20 ? 200 : 429)
    await expect.poll(() => countsOf(subject), { timeout: 60_000 }).toEqual(everything)
    // The broker may take the setting over after the first change of the policy: another one follows then.
    const isInAll = async () => {
      const found = batches(codec).every((count, at) => count > (before[at] ?? 0))
      if (!found) await addSubject(`${subject}-later`)
      return found
    }
    expect(await waitUntil(isInAll, { deadlineMs: 20_000, everyMs: 200 })).toBe(true)
    process.stdout.write(`${name.padEnd(6)} on the ${where.padEnd(6)} ${JSON.stringify(await countsOf(subject))}\n`)
  },
)

test('a batch that the disk changed is a dead letter and a gap of as many decisions, and nothing waits behind it', async () => {
  await setCompression('producer', 'broker')
  const key = await addSubject('spoilt')
  expect(await waitUntil(async () => (await ask(key)) === 200, { deadlineMs: 20_000, everyMs: 50 })).toBe(true)
  await expect.poll(async () => (await countsOf('spoilt'))?.counted, { timeout: 60_000 }).toBe(1)
  await Promise.all([stack.hold('metering'), stack.hold('alerting')])
  await Promise.all(Array.from({ length: 10 }, () => ask(key)))
  const ours = () =>
    batchesOf(topics.decisions)
      .map((batch) => ({ ...batch, bytes: readFileSync(batch.file).subarray(batch.start, batch.end) }))
      .map((batch) => ({ ...batch, decisions: batch.bytes.toString('latin1').split('"subject":"spoilt"').length - 1 }))
      .filter(({ decisions }) => decisions > 0)
  const inKafka = () => ours().reduce((sum, { decisions }) => sum + decisions, 0)
  await expect.poll(inKafka).toBe(11)
  const victim = ours().at(-1)
  if (victim === undefined) throw new Error('there is no batch')
  const { file, start, bytes, firstOffset, records, decisions } = victim
  const log = openSync(file, 'r+')
  writeSync(log, '*', start + bytes.indexOf('"subject":"spoilt"') + 3)
  closeSync(log)
  await Promise.all([stack.release('metering'), stack.release('alerting')])
  for (let sent = 0; sent < 9; sent += 1) expect(await ask(key)).toBe(200)

  const counted = 20 - decisions
  const wanted = { counted, allowed: counted, inRollup: counted, outcomes: 20, alerts: 2, delivered: 2 }
  await expect.poll(() => countsOf('spoilt'), { timeout: 60_000 }).toEqual(wanted)
  const [letter] = await readTopic(stack.kafka, topics.decisionsDeadLetters, ({ length }) => length > 0)
  expect(letter?.headers['x-error-reason']).toBe(
    `the batch of offsets ${firstOffset} to ${firstOffset + records - 1} cannot be read: its checksum is wrong`,
  )
  expect(letter?.value?.length).toBe(bytes.length)
  const gaps = 'SELECT toUInt32(sum(count)) AS missing, groupUniqArray(cause) AS causes FROM weir.gaps FINAL'
  const answer = await clickhouse.query({ query: gaps, format: 'JSONEachRow' })
  const [row] = await answer.json<{ missing: number; causes: string[] }>()
  expect([row?.missing, row?.causes.includes('dead_letter')]).toEqual([decisions, true])
})
