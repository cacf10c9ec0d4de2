import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { createPolicyWriter } from '@weir/policy-feed/policy-writer.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { openAlertingStack } from '../support/alerting/open-alerting.ts'
import { changesOf, wholeChange } from '../support/policy-topic.ts'
import { startServer } from '../support/servers/start-server.ts'
import { startTables } from '../support/servers/tables.ts'
import { type AlertingServers, type Contestant, startAlerting, startNothing } from './alerting/contestants.ts'
import { type AlertDelay, measureDelay, measureMany } from './alerting/deliveries.ts'
import { type DrainedDecisions, drainDecisions } from './alerting/drain-decisions.ts'
import { fillTopic } from './alerting/fill-topic.ts'
import { createTopics, forgetGroups } from './metering/full-topic.ts'
import { type BenchOptions, type BenchRatio, type BenchReport, type BenchRow, spread } from './report.ts'

const events = 1_000_000
const subjects = 10_000
const million = 1_000_000

const policy = JSON.stringify({
  version: 1,
  plans: { free: { limits: ['minute', 'day'] } },
  limits: {
    minute: { algorithm: 'fixed_window', size: 100, window: '1m' },
    day: { algorithm: 'fixed_window', size: 1_000, period: 'day', thresholds: ['80%', '100%'] },
  },
})

const kafkaOptions = (brokers: string) => ({
  brokers: [brokers],
  clientId: 'bench',
  log: createLogger('bench', 'error'),
})

/** Everything alerting needs, and a topic with these decisions. */
async function withDecisions<Result>(
  count: number,
  of: (number: number) => { readonly subject: string; readonly used: number },
  use: (servers: AlertingServers) => Promise<Result>,
): Promise<Result> {
  const [kafka, redis, tables] = await Promise.all([startServer(kafkaServer), startServer(redisServer), startTables()])
  try {
    const options = kafkaOptions(kafka.address)
    await createTopics(options)
    const writer = createPolicyWriter(options)
    await writer.publish(wholeChange(changesOf(policy)))
    await writer.close()
    await fillTopic(options, count, of)
    return await use({ brokers: kafka.address, clickhouseUrl: tables.url, redisUrl: redis.address })
  } finally {
    await Promise.all([kafka.close(), redis.close(), tables.close()])
  }
}

async function drained(start: Promise<Contestant>, count: number): Promise<DrainedDecisions> {
  const { program, port } = await start
  try {
    return await drainDecisions(program, port, count)
  } finally {
    await program.close()
  }
}

interface Round {
  readonly alerting: DrainedDecisions
  readonly nothing: DrainedDecisions
}

/**
 * One decision in a hundred is of a subject beyond a threshold: a hundred subjects, an alert each, found again all the
 * time.
 */
const oneInHundred = (number: number) => {
  const at = number % subjects
  return { subject: `customer-${at}`, used: at % 100 === 0 ? 850 : 300 }
}

async function throughput({ rounds, progress }: BenchOptions): Promise<Round[]> {
  return withDecisions(events, oneInHundred, async (servers) => {
    progress(`${events.toLocaleString('en-US')} decisions are in the topic`)
    const played: Round[] = []
    for (let round = 1; round <= rounds; round += 1) {
      await forgetGroups(kafkaOptions(servers.brokers))
      const alerting = await drained(startAlerting(servers), events)
      const nothing = await drained(startNothing(servers), events)
      played.push({ alerting, nothing })
      progress(`round ${round} of ${rounds}`)
    }
    return played
  })
}

/** A million subjects, each beyond a threshold: a million alerts. */
async function ofAMillion({ progress }: BenchOptions): Promise<DrainedDecisions> {
  const everybody = (number: number) => ({ subject: `customer-${number}`, used: 850 })
  return withDecisions(million, everybody, (servers) => {
    progress('a million subjects have reached a threshold')
    return drained(startAlerting(servers), million)
  })
}

async function delays({ rounds, progress }: BenchOptions): Promise<AlertDelay[]> {
  const stack = await openAlertingStack(['ops'])
  try {
    await stack.start()
    const measured: AlertDelay[] = []
    for (let round = 0; round <= rounds; round += 1) measured.push(await measureDelay(stack, `round-${round}`))
    progress('delays are measured')
    // What programs need to get warm is not measured.
    return measured.slice(1)
  } finally {
    await stack.close()
  }
}

/** One process of alerting on full topics; how soon a webhook is out, and what endpoints that hang do to the others. */
export async function run(options: BenchOptions): Promise<BenchReport> {
  const rounds = await throughput(options)
  const crowd = await ofAMillion(options)
  const delayed = await delays(options)
  const many = { healthy: await measureMany(false), hanging: await measureMany(true) }
  options.progress('10,000 endpoints are measured')
  const row = (label: string, unit: string, values: readonly number[]): BenchRow => ({ label, unit, ...spread(values) })
  const ratio = (label: string, values: readonly number[], target?: string): BenchRatio => ({
    label,
    ...spread(values),
    ...(target === undefined ? {} : { target }),
  })
  const of = (pick: (round: Round) => number) => rounds.map(pick)
  return {
    name: `alerting: ${events.toLocaleString('en-US')} decisions in a full topic, 1 % beyond a threshold, one process`,
    rows: [
      row(
        'alerting',
        'records/s',
        of(({ alerting }) => alerting.recordsPerSecond),
      ),
      row(
        'an empty eachBatch',
        'records/s',
        of(({ nothing }) => nothing.recordsPerSecond),
      ),
      row(
        'CPU, alerting',
        'µs/record',
        of(({ alerting }) => alerting.cpuUs),
      ),
      row(
        'CPU, an empty eachBatch',
        'µs/record',
        of(({ nothing }) => nothing.cpuUs),
      ),
      row(
        'memory, alerting',
        'MB',
        of(({ alerting }) => alerting.rssMb),
      ),
      row('memory with 1,000,000 subjects beyond a threshold (target ≤ 300)', 'MB', [crowd.rssMb]),
      row('alerts of those', 'alerts/s', [crowd.recordsPerSecond]),
      row(
        'decision to webhook, p50',
        'ms',
        delayed.map(({ p50Ms }) => p50Ms),
      ),
      row(
        'decision to webhook, p99',
        'ms',
        delayed.map(({ p99Ms }) => p99Ms),
      ),
      row('10,000 endpoints', 'webhooks/s', [many.healthy]),
      row('10,000 endpoints, 5 % hang: to the others', 'webhooks/s', [many.hanging]),
    ],
    ratios: [
      ratio(
        'alerting / an empty eachBatch, records/s',
        of((one) => one.alerting.recordsPerSecond / one.nothing.recordsPerSecond),
        '≥ 0.4',
      ),
      ratio('endpoints: 5 % hang / none hangs, webhooks/s', [many.hanging / many.healthy]),
    ],
  }
}
