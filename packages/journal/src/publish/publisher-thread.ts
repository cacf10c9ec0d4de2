import { parentPort, workerData } from 'node:worker_threads'
import { openBatchProducer } from '@weir/kafka/batch-producer.ts'
import type { KafkaLog } from '@weir/kafka/connect.ts'
import { createCrashPoint } from '@weir/runtime/crash-point.ts'
import { JournalState } from '../format/journal-state.ts'
import { JournalSender } from './journal-sender.ts'
import { OrphanJournals } from './orphan-journals.ts'
import { Publisher } from './publisher.ts'
import type { FromPublisher, PublisherStart, ToPublisher } from './publisher-supervisor.ts'
import type { Sink } from './sink.ts'
import type { TracedBatch } from './traced-batch.ts'
import { WatermarkSchedule } from './watermark-schedule.ts'

/*
 * The publisher: brings this process's journal to Kafka, and those of dead processes, on a thread of its own. If it
 * dies the main thread starts another one, which begins where the files say.
 *
 * Order of effects, with the names by which WEIR_CRASH_AT=ingress.STEP kills the process there:
 * 1. `send`: a batch is about to be sent. Nothing has happened.
 * 2. `answer`: Kafka has answered, and no process knows. The next reader of the directory sends the batch again.
 * 3. `quarantine`: a refused record is in its file, its gap record not yet sent. The same file is written again.
 * 4. `save`: what Kafka has is written down and segments are deleted; before it, they would only be sent again.
 * 5. `adopted_sent`: all of an orphaned journal is in Kafka, with its end watermarks, and the directory is still there:
 *    end watermarks again.
 */

const start: PublisherStart = workerData

/** Read ahead and kept until it is acknowledged: two batches for each of a dozen partitions. */
const inFlightBytesMax = 24 * 1024 * 1024

/** How often the acknowledged position is written, if it has changed. */
const saveEveryMs = 1_000

const post = (message: FromPublisher) => parentPort?.postMessage(message)

const logAs =
  (level: keyof KafkaLog) =>
  (fields: object, event: string): void =>
    post({ kind: 'log', level, fields: JSON.parse(JSON.stringify(fields)), event })
const log: KafkaLog = { debug: logAs('debug'), info: logAs('info'), warn: logAs('warn'), error: logAs('error') }

const crash = createCrashPoint('ingress', start.crashAt)
const state = new JournalState(start.shared)
// kafkajs logs every attempt to connect; the publisher logs those that matter.
const sink: Sink = openBatchProducer({ ...start, log: { ...log, info: log.debug } })
const onTraced = start.isTraced === true ? (batch: TracedBatch) => post({ kind: 'traced', batch }) : undefined
const own = new JournalSender({ path: start.path, state, inFlightBytesMax, log, crash, onTraced })

let isDraining = false
let isDrained = false
let nextSaveMs = Number.NEGATIVE_INFINITY
const schedule = new WatermarkSchedule()
const counts = start.topics.map(({ partitions }) => partitions)

/** Reports topics that have more partitions than they had, or were deleted and created with fewer. */
function comparePartitions(): void {
  for (const [topic, { name }] of start.topics.entries()) {
    const found = sink.topic(name)?.partitions
    if (found === undefined || found.length === 0) continue
    if (found.length === counts[topic]) continue
    counts[topic] = found.length
    own.setPartitions(topic, found.length)
    post({ kind: 'partitions', topic, partitions: found.length })
  }
}

/** One copy on the only broker is a choice, and is logged once. On several brokers it is a mistake: `lacksCopies`. */
function countCopies(): void {
  const found = start.topics.flatMap(({ name }) => sink.topic(name)?.partitions ?? [])
  if (found.length === 0) return
  const copies = Math.min(...found.map(({ replicas }) => replicas))
  if (state.get('replicas') === 0 && copies === 1 && sink.brokers() === 1)
    log.warn({}, 'Kafka has a single broker, so each record has one copy. If the broker is lost, all records are lost')
  state.set('brokers', sink.brokers())
  state.set('replicas', copies)
}

function everySecond(nowMs: number): void {
  nextSaveMs = nowMs + saveEveryMs
  own.save()
  adopted.save()
  crash('save')
  state.set('adoptedBytes', adopted.bytes)
  countCopies()
}

function finish(): void {
  if (isDrained || !own.isEmpty) return
  if (!own.isEnding) {
    own.queueWatermarks(Date.now(), true)
    return
  }
  own.save()
  isDrained = true
  post({ kind: 'drained' })
}

function onTick(nowMs: number): boolean {
  const { watermarkMs } = state.read()
  comparePartitions()
  const isAllRead = own.fill(nowMs)
  for (const topic of start.topics.keys()) {
    state.set('sent', Math.max(state.get('sent', topic), own.acknowledgedCount(topic)), topic)
  }
  state.set('oldestMs', Math.round(own.oldestMs ?? 0))
  adopted.tick(nowMs)
  state.set('adopted', adopted.count)
  if (nowMs >= nextSaveMs) everySecond(nowMs)
  // While the wall clock, set back, is behind it, records of before it still come; and metering takes no mark of a
  // time to come.
  const mayWatermark = isAllRead && !isDraining && watermarkMs > 0 && watermarkMs <= Date.now()
  if (mayWatermark && schedule.isDue(nowMs, own.readCount())) own.queueWatermarks(watermarkMs, false)
  if (isDraining && isAllRead) finish()
  return isDraining
}

const onTrouble = (reason: string) => post({ kind: 'trouble', reason })
const publisher = new Publisher({ sink, log, state, base: start.base, crash, onTick, onTrouble })
const adopted = new OrphanJournals({
  base: start.base,
  into: start,
  publisher,
  log,
  crash,
  onTraced,
  onCorrections: (corrections) => post({ kind: 'corrections', corrections }),
})

parentPort?.on('message', (message: ToPublisher) => {
  if (message === 'drain') {
    isDraining = true
    adopted.takeNoMore()
    publisher.wake(0)
    return
  }
  publisher.end()
  own.close()
  adopted.close()
  parentPort?.close()
})

publisher.add(own)
