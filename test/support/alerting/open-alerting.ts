import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { topics } from '@weir/contracts/topics.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { createPolicyWriter } from '@weir/policy-feed/policy-writer.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { listen } from '../listen.ts'
import { changesOf, wholeChange } from '../policy-topic.ts'
import { kafkaOptions } from '../servers/kafka-topics.ts'
import { startServer } from '../servers/start-server.ts'
import { startTables } from '../servers/tables.ts'
import { type ServiceProcess, startServiceProcess } from '../service-process.ts'

export const webhookSecret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
const startDeadlineMs = 60_000

/** A webhook as an endpoint got it. */
export interface Received {
  readonly path: string
  readonly atMs: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Redis, Kafka, ClickHouse, endpoints, and whatever alerting processes a test starts. */
export type AlertingStack = Awaited<ReturnType<typeof openAlertingStack>>

/** Sections of a policy; its endpoints stand beside those of the stack. */
interface Sections {
  readonly endpoints?: object
  readonly [section: string]: unknown
}

const policyOf = (names: Readonly<Record<string, string>>, { endpoints = {}, ...more }: Sections) =>
  JSON.stringify({
    version: 1,
    plans: { free: { limits: ['day'] } },
    limits: { day: { algorithm: 'fixed_window', size: 1_000, period: 'day', thresholds: ['80%', '100%'] } },
    endpoints: {
      ...Object.fromEntries(
        Object.entries(names).map(([name, url]) => [name, { url, secretEnv: 'OPS_SECRET', allowPrivate: true }]),
      ),
      ...endpoints,
    },
    ...more,
  })

/** Answers as each path is told to, and keeps what came. */
async function startReceiver() {
  const received: Received[] = []
  const answers = new Map<string, (response: ServerResponse) => void>()
  const server = createServer(async (request, response) => {
    const path = request.url ?? ''
    received.push({ path, atMs: Date.now(), headers: request.headers, body: await text(request) })
    const answer = answers.get(path) ?? ((out: ServerResponse) => out.writeHead(204).end())
    answer(response)
  })
  const port = await listen(server)
  return { server, received, answers, url: (path: string) => `http://127.0.0.1:${port}${path}` }
}

const periodsMs = { day: 86_400_000, minute: 60_000 } as const

interface DecideOptions {
  readonly size?: number
  readonly tsMs?: number
  /** The limit of that name, with that period. */
  readonly limit?: keyof typeof periodsMs
}

function decisionOf(subject: string, used: number, { size = 1_000, tsMs = Date.now(), limit = 'day' }: DecideOptions) {
  const resetMs = periodsMs[limit] - (tsMs % periodsMs[limit])
  const limits = [{ name: limit, size, used, remaining: Math.max(0, size - used), resetMs }]
  const open = encodeDecisionOpen(decisionInput({ id: uuidv7(tsMs), tsMs, subject, limits }))
  return `${open},"journal":"01a1fdfa-6d10-4540-81b4-576e9d55a36f","seq":0}`
}

/**
 * Starts the servers, with a policy whose endpoints have these names and lead to the paths `/NAME`, and these sections
 * besides, which may depend on the URLs of paths.
 */
export async function openAlertingStack(
  endpointNames: readonly string[],
  sections: Sections | ((url: (path: string) => string) => Sections) = {},
) {
  const [redis, kafka, tables, receiver] = await Promise.all([
    startServer(redisServer),
    startServer(kafkaServer),
    startTables(),
    startReceiver(),
  ])
  const options = kafkaOptions(kafka.address)
  await ensureTopics(options, await readTopics())
  const writer = createPolicyWriter(options)
  const endpoints = Object.fromEntries(endpointNames.map((name) => [name, receiver.url(`/${name}`)]))
  const more = typeof sections === 'function' ? sections(receiver.url) : sections
  // Topics that were just made may have no leader yet.
  const isStored = () =>
    writer.publish(wholeChange(changesOf(policyOf(endpoints, more)))).then(
      () => true,
      () => false,
    )
  await waitUntil(isStored, { deadlineMs: startDeadlineMs })
  await writer.close()
  const sender = createRecordSender(options)
  const started: ServiceProcess[] = []
  /** An alerting process, as soon as it is there: it may be gone before it is ready. */
  const launch = async (environment: Readonly<Record<string, string>> = {}) => {
    const one = await startServiceProcess('alerting', {
      WEIR_REDIS_URL: redis.address,
      WEIR_KAFKA_BROKERS: kafka.address,
      WEIR_CLICKHOUSE_URL: tables.url,
      WEIR_POLICY_FILE: '/nowhere/weir.yaml',
      OPS_SECRET: webhookSecret,
      ...environment,
    })
    started.push(one)
    return one
  }
  return {
    redis,
    kafka,
    tables,
    /** Everything that came, to any endpoint. */
    received: receiver.received,
    /** What an endpoint answers from now on; 204 until then. */
    answer: (path: string, how: (response: ServerResponse) => void) => void receiver.answers.set(path, how),
    launch,
    /** An alerting process that is ready. */
    async start(environment?: Readonly<Record<string, string>>) {
      const one = await launch(environment)
      const isReady = async () => (await one.ready()).status === 200
      const up = await waitUntil(isReady, { deadlineMs: startDeadlineMs, everyMs: 50 })
      if (up !== true) throw new Error(`alerting did not start:\n${one.said()}`)
      return one
    },
    /** Appends a decision of each subject that has used so much of its quota of `size`. */
    async decide(subjects: readonly string[], used: number, options: DecideOptions = {}) {
      const records = subjects.map((subject) => ({ key: subject, value: decisionOf(subject, used, options) }))
      await sender.send(topics.decisions, records)
    },
    rows: tables.rows,
    async close() {
      await Promise.all(started.map((one) => one.kill('SIGKILL')))
      receiver.server.closeAllConnections()
      receiver.server.close()
      await sender.close()
      await Promise.all([redis.close(), kafka.close(), tables.close()])
    },
  }
}
