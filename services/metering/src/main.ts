import { setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '@weir/core/clock.ts'
import { BatchConsumer } from '@weir/kafka/consume-batches.ts'
import { registerConsumers } from '@weir/kafka/consumer-metrics.ts'
import { createDeadLetterSink } from '@weir/kafka/dead-letters.ts'
import { kafkaOptionsFrom } from '@weir/kafka/kafka-variables.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { readConfig } from '@weir/runtime/read-config.ts'
import { startService } from '@weir/runtime/start-service.ts'
import { openTracing } from '@weir/runtime/tracing.ts'
import { blockSizeFor } from './block-size.ts'
import { meteringVariables } from './config.ts'
import { Meter } from './meter.ts'
import { type MeterCounters, newCounters, registerMetrics } from './metrics.ts'
import { openStore } from './open-store.ts'
import { decisions, outcomes } from './record-kinds.ts'
import { clusterHoldMs, WatermarkWriter } from './watermark-writer.ts'

/**
 * A fetch gathers until it reaches the time or the size. The work of a small insert is in its parts, not its rows, so
 * longer is cheaper; a decision is to be queryable within 2 s. Some 5,000 decisions reach the size: the more there are,
 * the sooner they are inserted. Outcomes are not queried by the second.
 */
const gatherMs = { decisions: 1_000, outcomes: 2_000 } as const
const gatherBytes = 2_500_000
/** Blocks that are inserted concurrently; a fetch brings the records of as many. */
const blocksAtOnce = 3
const group = {
  /** Kafka keeps processes out of the group that would take a partition of a block of several for one without. */
  protocol: 'weir-joint-blocks',
  /** Each start accepts a hundred bad records more: that is for a person. */
  mayGoOn: (reason: string) => !reason.startsWith('TOO_MANY_BAD'),
}
/** Shares of the session: how long ClickHouse may work on an insert, and when, a little later, metering ends it. */
const serverShare = 1 / 2
const clientShare = 2 / 3
/** Heartbeats of a session: kafkajs sends no more. */
const heartbeatShare = 1 / 6

await startService(
  'metering',
  () => readConfig(meteringVariables, process.env),
  async (config, service) => {
    const { run, log, metrics, checkReady, crash } = service
    const tracing = await openTracing(config, 'metering', service)
    const { sessionMs } = config
    const kafka = kafkaOptionsFrom(config, 'weir-metering', log)
    const times = { requestMs: Math.floor(sessionMs * clientShare), insertMs: Math.floor(sessionMs * serverShare) }
    const clickhouse = await run.own('clickhouse', openStore(config, times), (one) => one.close())
    checkReady('clickhouse', () => clickhouse.readiness())
    const { store } = clickhouse
    const sender = await run.own('dead letters', createRecordSender(kafka), (one) => one.close())
    checkReady('dead letters', () => sender.denied)
    const byTopic = new Map<string, MeterCounters>()
    const blockMax = blockSizeFor(sessionMs)

    const hold = config.clickhouseCluster === '' ? {} : { holdMs: clusterHoldMs }
    // Before the consumers, so that it is closed after them.
    const watermarks = await run.own('marks', new WatermarkWriter({ store, log, crash, ...hold }), (one) => one.close())
    const consumers: BatchConsumer[] = []
    for (const { kind, groupId, maxWaitMs } of [
      { kind: decisions, groupId: 'weir-metering', maxWaitMs: gatherMs.decisions },
      { kind: outcomes, groupId: 'weir-metering-outcomes', maxWaitMs: gatherMs.outcomes },
    ]) {
      const counters = newCounters()
      byTopic.set(kind.topic, counters)
      const meter = new Meter({
        kind,
        clock: systemClock,
        store,
        counters,
        crash,
        watermarks,
        tracing: kind === decisions ? tracing : undefined,
        blockMax,
        blocksAtOnce,
        deadLetters: createDeadLetterSink(sender, kind.deadLetters),
        log: log.child({ topic: kind.topic }),
        heartbeatIntervalMs: Math.floor(sessionMs * heartbeatShare),
        pause: (ms) => pause(ms, undefined, { signal: run.stopping }),
      })
      const consumer = await run.own(
        `consumer of ${kind.topic}`,
        new BatchConsumer({
          ...kafka,
          groupId,
          topics: [kind.topic],
          sessionTimeoutMs: sessionMs,
          maxWaitMs,
          minBytes: gatherBytes,
          maxBytes: blockMax.bytes * blocksAtOnce,
          partitionsAtOnce: blocksAtOnce,
          ...group,
          onAssigned: (assigned) => meter.onAssigned(assigned),
          onRound: (batches) => meter.onRound(batches),
          onCrash: run.fail,
        }),
        (one) => one.stop(),
      )
      consumers.push(consumer)
      checkReady(`consumer of ${kind.topic}`, () =>
        consumer.status.state === 'running' ? meter.waiting(consumer.status) : consumer.status.waitingFor,
      )
    }
    registerMetrics(metrics, byTopic)
    registerConsumers(metrics, consumers)
  },
)
