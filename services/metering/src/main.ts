import { setTimeout as pause } from 'node:timers/promises'
import { clickhouseMissing, connectClickhouse } from '@weir/clickhouse/connect.ts'
import { topics } from '@weir/contracts/topics.ts'
import { consumeBatches } from '@weir/kafka/consume-batches.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { readConfig } from '@weir/runtime/read-config.ts'
import { startService } from '@weir/runtime/start-service.ts'
import { meteringVariables } from './config.ts'
import { createDeadLetterSink } from './dead-letters.ts'
import { createMeterBatch } from './meter-batch.ts'
import { registerMetrics } from './metrics.ts'
import { createUsageStore } from './usage-store.ts'

/** A fetch gathers this long or this much; a decision is seen in ClickHouse well within a second. */
const gatherMs = 300
const gatherBytes = 4_000_000
/** Of one fetch: about 40,000 decisions, a good insert and a bounded memory. */
const fetchBytesMax = 20_000_000
/** Of the session: an insert's time, with room for the heartbeat after it. */
const insertShare = 2 / 3

await startService(
  'metering',
  () => readConfig(meteringVariables, process.env),
  async (config, { run, log, metrics, checkReady }) => {
    // An insert ends before its partition could pass to another process.
    const insertMs = Math.floor(config.sessionMs * insertShare)
    const kafka = { brokers: config.kafkaBrokers, clientId: 'weir-metering', log }
    const clickhouse = await run.own(
      'clickhouse',
      connectClickhouse(config.clickhouseUrl, 'weir-metering', insertMs),
      (client) => client.close(),
    )
    checkReady('clickhouse', () => clickhouseMissing(clickhouse))
    const sender = await run.own('dead letters', createRecordSender(kafka), (one) => one.close())

    const counters = { rows: 0, batches: 0, deadLetters: 0, insertRetries: 0 }
    const meterBatch = createMeterBatch({
      store: createUsageStore(clickhouse),
      deadLetters: createDeadLetterSink(sender, topics.decisionsDeadLetters),
      counters,
      log,
      pause: (ms) => pause(ms, undefined, { signal: run.stopping }),
    })
    const consumer = await run.own(
      'consumer',
      consumeBatches({
        ...kafka,
        groupId: 'weir-metering',
        topics: [topics.decisions],
        sessionTimeoutMs: config.sessionMs,
        maxWaitMs: gatherMs,
        minBytes: gatherBytes,
        maxBytes: fetchBytesMax,
        partitionsAtOnce: 3,
        onBatch: ({ records, ...batch }) => meterBatch({ ...batch, messages: records }),
        onCrash: run.fail,
      }),
      (one) => one.stop(),
    )
    const lag = () => consumer.status.positions.reduce((sum, position) => sum + position.lag, 0)
    registerMetrics(metrics, counters, lag)
    checkReady('kafka', () => (consumer.status.state === 'running' ? undefined : consumer.status.waitingFor))
  },
)
