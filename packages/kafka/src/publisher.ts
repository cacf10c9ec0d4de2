import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { KafkaOptions } from './connect.ts'
import { reasonOf } from './kafka-errors.ts'
import { batchBytesMax, Lane, type LaneBatch } from './lane.ts'
import { partitionOf } from './partition.ts'
import { createProducer, type ReconnectingProducer } from './reconnecting-producer.ts'
import type { OpenSum, RecordLog } from './record-log.ts'
import { retryDelayMs } from './retry-delay.ts'

export interface PublisherOptions extends KafkaOptions {
  readonly topic: string
  /** How many partitions to assume while Kafka cannot be asked; from infra/kafka/topics.json. */
  readonly partitionsWhenAway: number
  /** The most that may wait; given by tests only. */
  readonly bounds?: { readonly records: number; readonly bytes: number }
}

/** Two minutes of 2,000 decisions a second; at 450 bytes each they are what 128 MB hold, which every host of a gateway can spare. */
const defaultBounds = { records: 250_000, bytes: 128 * 1024 * 1024 }

/** What a record costs in memory beside its text: the message object, its place in the list, string headers. */
const recordOverheadBytes = 100

/** Gathers a batch; invisible beside the second within which usage is to be seen. */
const lingerMs = 20

/** How long a start waits to hear the partition count before it takes the one from the file. */
const startDeadlineMs = 2_000

/** Every so many failed attempts in a row one is logged: about twice a minute at the longest pause. */
const failuresPerLogLine = 6

const alreadyWritten = Promise.resolve(true)

/** Publishes from memory, behind the port that the journal will take over. What waits is lost with the process. */
class Publisher implements RecordLog {
  readonly #topic: string
  readonly #producer: ReconnectingProducer
  readonly #log: KafkaOptions['log']
  readonly #bounds: { readonly records: number; readonly bytes: number }
  readonly #lanes: Lane[] = []
  readonly #beforeSeq = `,"journal":"${randomUUID()}","seq":`
  #partitions = 0
  #records = 0
  #bytes = 0
  #timer: NodeJS.Timeout | undefined
  #closed = false
  /** Nothing is sent any more; what is left is lost. */
  #ended = false
  #onEmpty: (() => void) | undefined
  readonly counters = { appended: 0, refused: 0, sent: 0, failedAttempts: 0 }

  constructor(options: PublisherOptions, producer: ReconnectingProducer, partitions: number) {
    this.#topic = options.topic
    this.#producer = producer
    this.#log = options.log
    this.#bounds = options.bounds ?? defaultBounds
    this.#spreadOver(partitions)
  }

  get backlog() {
    const firsts = this.#lanes.flatMap((lane) => (lane.first === undefined ? [] : [lane.first.firstAppendMs]))
    return {
      records: this.#records,
      bytes: this.#bytes,
      oldestAppendMs: firsts.length > 0 ? Math.min(...firsts) : undefined,
    }
  }

  append(key: string, openLine: string): boolean {
    if (this.#closed || this.#records >= this.#bounds.records || this.#bytes >= this.#bounds.bytes) {
      this.counters.refused += 1
      return false
    }
    const lane = this.#lanes[partitionOf(key, this.#partitions)]
    if (lane === undefined) throw new Error(`no lane for key ${key}`)
    const value = `${openLine + this.#beforeSeq + lane.nextSeq}}`
    const bytes = Buffer.byteLength(value) + key.length
    if (bytes > batchBytesMax)
      throw new RangeError(`a record of ${bytes} bytes: its fields were not bounded where they came in`)
    lane.append(key, value, bytes)
    this.#records += 1
    this.#bytes += bytes + recordOverheadBytes
    this.counters.appended += 1
    if (lane.isRipe && !lane.busy) this.#wake(0)
    else if (this.#timer === undefined) this.#wake(lingerMs)
    return true
  }

  /** Not summed here: one record for each that is counted. */
  openSum(key: string, beforeCount: string, afterCount: string): OpenSum {
    return { add: () => this.append(key, `${beforeCount}1${afterCount}`) }
  }

  /** Memory is all there is here. */
  written(): Promise<boolean> {
    return alreadyWritten
  }

  async drain(deadlineMs: number): Promise<{ readonly lost: number }> {
    this.#closed = true
    const { promise: empty, resolve } = Promise.withResolvers<void>()
    this.#onEmpty = resolve
    if (this.#records === 0) resolve()
    this.#wake(0)
    const deadline = new AbortController()
    await Promise.race([empty, delay(deadlineMs, undefined, { signal: deadline.signal }).catch(() => undefined)])
    deadline.abort()
    clearTimeout(this.#timer)
    this.#ended = true
    await this.#producer.close()
    return { lost: this.#records }
  }

  /** New records go to so many partitions from now on; lanes beyond keep what they have. */
  #spreadOver(partitions: number): void {
    for (let partition = this.#lanes.length; partition < partitions; partition += 1)
      this.#lanes.push(new Lane(partition))
    this.#partitions = partitions
  }

  #wake(inMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#flush()
    }, inMs)
  }

  /** All lanes in good order share a request. One that failed goes alone until it is through, so that it holds up nobody else. */
  #flush(): void {
    const idle = this.#lanes.filter((lane) => !lane.busy && lane.first !== undefined)
    const sound = idle.filter((lane) => lane.failures === 0)
    if (sound.length > 0) void this.#send(sound)
  }

  async #send(lanes: readonly Lane[]): Promise<void> {
    const batches = lanes.flatMap((lane) => {
      const batch = lane.take()
      lane.busy = true
      return batch === undefined ? [] : [batch]
    })
    const failure = await this.#attempt(lanes, batches)
    for (const lane of lanes) {
      lane.busy = false
      if (failure === undefined) this.#acknowledge(lane)
      else void this.#sendAgain(lane, failure)
    }
    if (this.#records === 0) this.#onEmpty?.()
    else if (this.#ended) return
    else if (this.#timer === undefined) this.#wake(this.#closed || lanes.some((lane) => lane.isRipe) ? 0 : lingerMs)
  }

  /** One request. Undefined when Kafka named every partition in its answer, for kafkajs leaves out those it has no leader for. */
  async #attempt(lanes: readonly Lane[], batches: readonly LaneBatch[]): Promise<unknown> {
    try {
      const answer = await this.#producer.send(
        this.#topic,
        batches.flatMap((batch) => batch.messages),
      )
      const stored = new Set(answer.filter((one) => one.errorCode === 0).map((one) => one.partition))
      const missing = lanes.filter((lane) => !stored.has(lane.partition)).map((lane) => lane.partition)
      return missing.length === 0 ? undefined : new Error(`no answer for partitions ${missing.join(', ')}`)
    } catch (error) {
      return error
    }
  }

  #acknowledge(lane: Lane): void {
    const batch = lane.first
    if (batch === undefined) return
    lane.acknowledge()
    this.#records -= batch.messages.length
    this.#bytes -= batch.bytes + batch.messages.length * recordOverheadBytes
    this.counters.sent += batch.messages.length
  }

  /** Whether Kafka has stored the batch or not: the same records again, under the same numbers. */
  async #sendAgain(lane: Lane, failure: unknown): Promise<void> {
    lane.busy = true
    lane.failures += 1
    this.counters.failedAttempts += 1
    if (lane.failures % failuresPerLogLine === 1) {
      const fields = {
        topic: this.#topic,
        partition: lane.partition,
        failures: lane.failures,
        reason: reasonOf(failure),
      }
      this.#log.warn({ ...fields, waiting: this.#records }, 'records not acknowledged, sending again')
    }
    await delay(retryDelayMs(lane.failures))
    if (!this.#ended) await this.#send([lane])
  }

  /** Asks Kafka for the partition count until it answers, and then spreads over that. */
  async learnPartitions(): Promise<void> {
    for (let failures = 1; !this.#closed; failures += 1) {
      const found = await this.#producer.countPartitions(this.#topic).catch(() => 0)
      if (found > 0) {
        if (found !== this.#partitions) {
          this.#log.error(
            { topic: this.#topic, assumed: this.#partitions, found },
            'topic has another partition count than assumed',
          )
          this.#spreadOver(found)
        }
        return
      }
      await delay(retryDelayMs(failures), undefined, { ref: false })
    }
  }
}

/**
 * Opens a record log over Kafka. Kafka may be away: then records wait in memory, to the bound, spread over the partitions that
 * infra/kafka/topics.json names.
 */
export async function openPublisher(options: PublisherOptions): Promise<RecordLog> {
  const producer = createProducer(options)
  const asked = producer.countPartitions(options.topic).catch(() => 0)
  const patience = new AbortController()
  const found = await Promise.race([asked, delay(startDeadlineMs, 0, { signal: patience.signal }).catch(() => 0)])
  patience.abort()
  const publisher = new Publisher(options, producer, found > 0 ? found : options.partitionsWhenAway)
  if (found === 0) void publisher.learnPartitions()
  return publisher
}
