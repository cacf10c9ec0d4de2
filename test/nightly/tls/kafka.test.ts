import { randomUUID } from 'node:crypto'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Journal } from '@weir/journal/open-journal.ts'
import type { KafkaLog, KafkaOptions } from '@weir/kafka/connect.ts'
import { BatchConsumer } from '@weir/kafka/consume-batches.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { kafkaOptionsFrom, kafkaVariables } from '@weir/kafka/kafka-variables.ts'
import { PartitionAdmin } from '@weir/kafka/partition-admin.ts'
import { openPartitionLog } from '@weir/kafka/partition-log.ts'
import { PolicyFeed } from '@weir/policy-feed/policy-feed.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { type Environment, readConfig } from '@weir/runtime/read-config.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, inject, onTestFinished, test } from 'vitest'
import { folderForTest, forFile, forTest } from '../../support/opened.ts'
import { createAuthority } from '../../support/servers/certificates.ts'
import { topicSpec } from '../../support/servers/kafka-topics.ts'
import { openTestJournal } from '../../support/servers/open-test-journal.ts'
import { testConsumer } from '../../support/servers/read-topic.ts'
import { startSecureKafka } from '../../support/servers/secure-kafka.ts'
import { startTokenServer } from '../../support/servers/token-server.ts'
import { until } from '../../support/until.ts'
import { runWeir } from '../../support/weir-up.ts'

const user = 'weir-test'
const password = 'a password: 100 % "secret"'
const mayAll = [
  { resource: 'Topic', name: 'test.', pattern: 'prefixed', operation: 'All' },
  { resource: 'Group', name: 'test-', pattern: 'prefixed', operation: 'All' },
] as const

const dir = mkdtempSync(join(tmpdir(), 'weir-test-secure-'))
const tokens = await forFile(startTokenServer(user, 600))
const kafka = await forFile(startSecureKafka({ plainUsers: { [user]: 'plain' } }))
await kafka.setPassword(user, password)
await kafka.grant(user, mayAll)
afterAll(() => void rmSync(dir, { recursive: true, force: true }))

/** A file of the test's own, which it may replace. */
function file(of: { readonly text: string } | { readonly copy: string }): string {
  const path = join(dir, randomUUID())
  if ('text' in of) writeFileSync(path, of.text)
  else copyFileSync(of.copy, path)
  return path
}

const scram = (passwordFile: string): Environment => ({
  WEIR_KAFKA_BROKERS: kafka.address,
  WEIR_KAFKA_TLS_CA: kafka.caFile,
  WEIR_KAFKA_SASL_MECHANISM: 'SCRAM-SHA-512',
  WEIR_KAFKA_SASL_USERNAME: user,
  WEIR_KAFKA_SASL_PASSWORD_FILE: passwordFile,
})
const oauth = (): Environment => ({
  WEIR_KAFKA_BROKERS: kafka.address,
  WEIR_KAFKA_TLS_CA: kafka.caFile,
  WEIR_KAFKA_SASL_MECHANISM: 'OAUTHBEARER',
  WEIR_KAFKA_OAUTH_TOKEN_URL: tokens.url,
  WEIR_KAFKA_OAUTH_CLIENT_ID: 'weir: client',
  WEIR_KAFKA_OAUTH_CLIENT_SECRET: 'its secret',
  WEIR_KAFKA_OAUTH_SCOPE: 'kafka',
})

/** What a process with this environment connects by, and all that it logs. */
function reach(environment: Environment): { readonly options: KafkaOptions; readonly logged: string[] } {
  const logged: string[] = []
  const note = (fields: object, event: string) => void logged.push(`${event} ${JSON.stringify(fields)}`)
  const log: KafkaLog = { debug: note, info: note, warn: note, error: note }
  return { options: kafkaOptionsFrom(readConfig(kafkaVariables, environment), 'test', log), logged }
}

interface Flow {
  readonly journal: Journal
  readonly consumer: BatchConsumer
  readonly crashes: unknown[]
  append(count: number): void
  /** Each number that was appended has come; repeats are dropped by their number, as metering does. */
  allRead(): Promise<void>
}

/** A journal that sends to a topic, and a group that reads it. */
async function startFlow(options: KafkaOptions, topic = ''): Promise<Flow> {
  const read = new Set<number>()
  const crashes: unknown[] = []
  const journal = await openTestJournal(options, await folderForTest('journal'), [topic], {
    log: options.log as Logger,
  })
  onTestFinished(() => journal.drain(0).then(() => undefined))
  const consumer = new BatchConsumer({
    ...testConsumer(options, [topic]),
    async onBatch(batch) {
      for (const { value } of batch.records) {
        const n = /^\{"n":(\d+)/.exec(value?.toString() ?? '')?.[1]
        if (n !== undefined) read.add(Number(n))
      }
      await batch.commit(String(BigInt(batch.records.at(-1)?.offset ?? '0') + 1n))
    },
    onCrash: (error) => crashes.push(error),
  })
  onTestFinished(() => consumer.stop())
  let appended = 0
  return {
    journal,
    consumer,
    crashes,
    append(count) {
      for (const end = appended + count; appended < end; appended += 1)
        expect(journal.log(0).append(`subject-${appended % 50}`, `{"n":${appended}`, true)).toBe(true)
    },
    async allRead() {
      await waitUntil(() => read.size === appended, { deadlineMs: 40_000 })
      expect(read.size).toBe(appended)
      expect(crashes).toEqual([])
    },
  }
}

const makeTopic = async (options: KafkaOptions) => {
  const spec = topicSpec(6)
  expect((await ensureTopics(options, [spec])).created).toEqual([spec.name])
  return spec.name
}

test.for<[string, () => Environment | Promise<Environment>]>([
  ['PLAIN', () => ({ ...scram(file({ text: 'plain\n' })), WEIR_KAFKA_SASL_MECHANISM: 'PLAIN' })],
  ['SCRAM-SHA-256', () => ({ ...scram(file({ text: password })), WEIR_KAFKA_SASL_MECHANISM: 'SCRAM-SHA-256' })],
  [
    'SCRAM-SHA-512 by another name of the server',
    () => ({ ...scram(file({ text: password })), WEIR_KAFKA_TLS_SERVER_NAME: 'localhost' }),
  ],
  ['OAUTHBEARER', oauth],
  [
    'a client certificate',
    async () => {
      const { certFile, keyFile } = await kafka.authority.issue(user)
      const ours = { WEIR_KAFKA_TLS_CERT: certFile, WEIR_KAFKA_TLS_KEY: keyFile }
      return { WEIR_KAFKA_BROKERS: kafka.tlsAddress, WEIR_KAFKA_TLS_CA: kafka.caFile, ...ours }
    },
  ],
])('Every kind of connection works with %s', async ([, environment]) => {
  const given = await environment()
  const { options, logged } = reach(given)
  const topic = await makeTopic(options)
  const flow = await startFlow(options, topic)
  flow.append(1_000)
  await flow.allRead()
  const log = await openPartitionLog(options, topic)
  const { first, end } = await log.range()
  expect((await log.read(first)).records.length).toBeGreaterThan(0)
  await log.close()
  const admin = new PartitionAdmin(options, `test-${topic}`)
  expect(await admin.describe(topic, 0)).toMatchObject({ first, committed: undefined })
  expect((await admin.readRange(topic, 0, first, end - 1n)).length).toBeGreaterThan(0)
  await admin.close()
  if (given.WEIR_KAFKA_SASL_MECHANISM === 'OAUTHBEARER') {
    const basic = Buffer.from('weir%3A+client:its+secret').toString('base64')
    expect(tokens.asked[0]).toEqual({
      authorization: `Basic ${basic}`,
      body: 'grant_type=client_credentials&scope=kafka',
    })
    expect(tokens.asked).toHaveLength(2) // of the process and of its publisher's thread
  }
  expect(logged.join('\n')).not.toMatch(/secret|plain\b/)
})

/** Everything that waits for Kafka says so in these words; nothing that it says holds a secret. */
async function everyPartSays(flow: Flow, options: KafkaOptions, logged: readonly string[], sentence: RegExp) {
  const admin = await forTest(new PartitionAdmin(options, 'test-admin'))
  const feed = await forTest(
    new PolicyFeed({ ...options, topic: 'test.policy', snapshotPath: '', seed: () => undefined }),
  )
  const says = { consumer: '', journal: '', policy: '', log: '' }
  await waitUntil(
    () => {
      says.consumer = flow.consumer.status.waitingFor
      says.journal = flow.journal.unsentFor
      says.policy = feed.status.waitingFor
      says.log = logged.find((line) => sentence.test(line)) ?? ''
      return Object.values(says).every((text) => sentence.test(text))
    },
    { deadlineMs: 30_000 },
  )
  const wanted = expect.stringMatching(sentence)
  expect(says).toEqual({ consumer: wanted, journal: wanted, policy: wanted, log: wanted })
  await expect(admin.describe('test.any', 0)).rejects.toMatchObject({ code: 'KAFKA_DENIED', message: wanted })
  await expect(ensureTopics(options, [topicSpec(1)])).rejects.toMatchObject({ code: 'KAFKA_DENIED', message: wanted })
  expect(flow.crashes).toEqual([])
  expect(logged.join('\n')).not.toMatch(/wrong|secret/)
}

const notSigned = /the certificate of 127\.0\.0\.1:\d+ is not from a CA that WEIR_KAFKA_TLS_CA holds/

test.for<
  [string, (broken: string) => Environment | Promise<Environment>, () => { copy: string } | { text: string }, RegExp]
>([
  [
    'a wrong password',
    (path) => scram(path),
    () => ({ text: password }),
    /Kafka refuses the user weir-test \(.+\): see WEIR_KAFKA_SASL_PASSWORD_FILE/,
  ],
  [
    'a wrong password of PLAIN',
    (path) => ({ ...scram(path), WEIR_KAFKA_SASL_MECHANISM: 'PLAIN' }),
    () => ({ text: 'plain' }),
    /Kafka refuses the user weir-test \(.+\): see WEIR_KAFKA_SASL_PASSWORD_FILE/,
  ],
  [
    'a wrong secret of the token server',
    (path) => ({ ...oauth(), WEIR_KAFKA_OAUTH_CLIENT_SECRET: '', WEIR_KAFKA_OAUTH_CLIENT_SECRET_FILE: path }),
    () => ({ text: 'right' }),
    /no token for Kafka from WEIR_KAFKA_OAUTH_TOKEN_URL: it answers 401 invalid_client; see WEIR_KAFKA_OAUTH_CLIENT_ID and WEIR_KAFKA_OAUTH_CLIENT_SECRET_FILE/,
  ],
  [
    'an unknown authority',
    (path) => {
      copyFileSync(kafka.otherCaFile, path)
      return { ...scram(file({ text: password })), WEIR_KAFKA_TLS_CA: path }
    },
    () => ({ copy: kafka.caFile }),
    notSigned,
  ],
])(
  'With %s all wait, name the variable, and go on by themselves once the file is right',
  async ([, environment, right, sentence]) => {
    const topic = await makeTopic(reach(scram(file({ text: password }))).options)
    const path = file({ text: 'wrong' })
    const { options, logged } = reach(await environment(path))
    const flow = await startFlow(options, topic)
    flow.append(500)
    await everyPartSays(flow, options, logged, sentence)
    const found = right()
    if ('text' in found) writeFileSync(path, found.text)
    else copyFileSync(found.copy, path)
    await flow.allRead()
    await until(() => flow.journal.unsentFor === '', 10_000)
  },
)

test.for<[string, () => Environment | Promise<Environment>, RegExp]>([
  [
    'The server has another name',
    () => ({ ...scram(file({ text: password })), WEIR_KAFKA_TLS_SERVER_NAME: 'kafka.example' }),
    /the certificate of 127\.0\.0\.1:\d+ is for a different host name: set WEIR_KAFKA_TLS_SERVER_NAME/,
  ],
  [
    'The authority is none that the system trusts',
    () => ({ ...scram(file({ text: password })), WEIR_KAFKA_TLS: 'on', WEIR_KAFKA_TLS_CA: '' }),
    /the certificate of 127\.0\.0\.1:\d+ is not from a CA that the system trusts, see WEIR_KAFKA_TLS_CA/,
  ],
  [
    'The server asks for a certificate',
    () => ({ WEIR_KAFKA_BROKERS: kafka.tlsAddress, WEIR_KAFKA_TLS_CA: kafka.caFile }),
    /127\.0\.0\.1:\d+ requires a client certificate: see WEIR_KAFKA_TLS_CERT and WEIR_KAFKA_TLS_KEY/,
  ],
  [
    'The server does not know who signed our certificate',
    async () => {
      const { certFile, keyFile } = await (await createAuthority(dir, 'unknown')).issue(user)
      const ours = { WEIR_KAFKA_TLS_CERT: certFile, WEIR_KAFKA_TLS_KEY: keyFile }
      return { WEIR_KAFKA_BROKERS: kafka.tlsAddress, WEIR_KAFKA_TLS_CA: kafka.caFile, ...ours }
    },
    /127\.0\.0\.1:\d+ does not accept the certificate in WEIR_KAFKA_TLS_CERT/,
  ],
  [
    'Plain text on a port for TLS',
    () => ({ WEIR_KAFKA_BROKERS: kafka.tlsAddress }),
    /closed the connection without a response: if the broker uses TLS, set WEIR_KAFKA_TLS/,
  ],
  [
    'TLS on a port for plain text',
    () => ({ WEIR_KAFKA_BROKERS: inject('kafkaBrokers'), WEIR_KAFKA_TLS: 'on' }),
    /does not respond over TLS: check that WEIR_KAFKA_BROKERS names its TLS port, or check WEIR_KAFKA_TLS/,
  ],
  [
    'No login where one is asked for',
    () => ({ WEIR_KAFKA_BROKERS: kafka.address, WEIR_KAFKA_TLS_CA: kafka.caFile }),
    /if the broker requires a password, set WEIR_KAFKA_SASL_MECHANISM/,
  ],
  [
    'A token that Kafka does not take',
    async () => {
      const { url, close } = await startTokenServer(user, -60)
      onTestFinished(close)
      return { ...oauth(), WEIR_KAFKA_OAUTH_TOKEN_URL: url }
    },
    /Kafka refuses the token for weir: client \(.+\): see WEIR_KAFKA_OAUTH_CLIENT_ID and WEIR_KAFKA_OAUTH_SCOPE/,
  ],
  [
    'A login where none is asked for',
    () => ({ ...scram(file({ text: password })), WEIR_KAFKA_BROKERS: inject('kafkaBrokers'), WEIR_KAFKA_TLS_CA: '' }),
    /Kafka takes no such login here \(.+\): see WEIR_KAFKA_SASL_MECHANISM/,
  ],
])('%s: all wait, and name the variable', async ([, environment, sentence]) => {
  const { options, logged } = reach(await environment())
  const flow = await startFlow(options, 'test.any')
  flow.append(1)
  await everyPartSays(flow, options, logged, sentence)
})

test('WEIR_KAFKA_TLS=on trusts the authorities of the system', async () => {
  const environment = { ...scram(file({ text: password })), WEIR_KAFKA_TLS: 'on', WEIR_KAFKA_TLS_CA: '' }
  const { stderr } = await runWeir(['topics'], { ...environment, SSL_CERT_FILE: kafka.caFile })
  expect(stderr).toContain('the user of WEIR_KAFKA_SASL_USERNAME lacks')
})

test('A session that ends every 3 s, a new password and a restart of the broker lose nothing and go on by themselves', async () => {
  const shortTokens = await forTest(startTokenServer(user, 20))
  const short = await forTest(startSecureKafka({ settings: { 'connections.max.reauth.ms': 3_000 } }))
  await short.setPassword(user, password)
  await short.grant(user, mayAll)
  const passwordFile = file({ text: password })
  const here = { WEIR_KAFKA_BROKERS: short.address, WEIR_KAFKA_TLS_CA: short.caFile }
  const byPassword = reach({ ...scram(passwordFile), ...here })
  const byToken = reach({ ...oauth(), ...here, WEIR_KAFKA_OAUTH_TOKEN_URL: shortTokens.url })
  const topics = [await makeTopic(byPassword.options), await makeTopic(byPassword.options)]
  const flows = [await startFlow(byPassword.options, topics[0]), await startFlow(byToken.options, topics[1])]
  const run = async (ms: number) => {
    const endsAt = performance.now() + ms
    await waitUntil(
      () => {
        for (const flow of flows) flow.append(20)
        return performance.now() > endsAt
      },
      { deadlineMs: ms + 5_000, everyMs: 50 },
    )
    for (const flow of flows) await flow.allRead()
  }
  // A broker that has just started may refuse the first of a group while it makes the topic of offsets.
  await run(500)
  for (const { logged } of [byPassword, byToken]) logged.length = 0
  await run(8_000)
  const faults = () => [...byPassword.logged, ...byToken.logged].filter((line) => /Crash|again|SASL|closed/.test(line))
  expect(faults()).toEqual([])
  await short.setPassword(user, 'another')
  writeFileSync(passwordFile, 'another')
  await run(8_000)
  await short.kill('SIGKILL')
  await short.restart()
  await run(1_000)
})
