import type { KafkaLog } from '@weir/kafka/connect.ts'
import { reasonOf } from '@weir/kafka/kafka-errors.ts'
import { retryDelayMs } from '@weir/kafka/retry-delay.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { JournalState } from '../format/journal-state.ts'
import type { JournalSender } from './journal-sender.ts'
import type { PartitionQueue } from './partition-queue.ts'
import { quarantineRejected } from './quarantine.ts'
import type { Sink, SinkResult } from './sink.ts'

/**
 * Gathers a batch; short against the second within which usage is to be seen. Each request costs both sides as much
 * as many records.
 */
const lingerMs = 50

/** Looks less often while there is nothing: the first record after a pause waits up to this long. */
const idleMs = 200

/** Of one request, give or take a batch; larger ones only make it longer until the first answer. */
const requestBytesMax = 4 * 1024 * 1024

/** A raised partition count is to be noticed within a minute. */
const metadataMaxAgeMs = 30_000

/** After a fault of a partition leaders are asked for at most this often. */
const metadataMinAgeMs = 500

/** How often a fault that lasts is logged. */
const logEveryMs = 30_000

/** A new leader is named meanwhile, in less than a second. */
const failuresToSay = 3

interface Sending {
  readonly sender: JournalSender
  readonly nodeId: number
  readonly queues: readonly PartitionQueue[]
}

interface PublisherOptions {
  readonly sink: Sink
  readonly log: KafkaLog
  readonly state: JournalState
  /** Where all journals are. */
  readonly base: string
  readonly crash: CrashPoint
  /**
   * At each look at the journals, before anything is sent; with `performance.now()`. True while it has work that should
   * not wait.
   */
  readonly onTick: (nowMs: number) => boolean
  /** Why Kafka takes nothing, or not all; empty once it does. */
  readonly onTrouble: (reason: string) => void
}

/**
 * Brings senders to Kafka: each partition of each journal in order, one request of it at a time. What is not
 * acknowledged is sent again from the first such record on, whether Kafka has it or not; readers of the topic drop what
 * they see twice, by its number. It goes by a clock that is never set back (`performance.now()`): deadlines of the wall
 * clock would hold everything up for as long as it was set back.
 */
export class Publisher {
  readonly #options: PublisherOptions
  readonly #senders = new Set<JournalSender>()
  readonly #complaints = new Map<string, string>()
  #timer: NodeJS.Timeout | undefined
  #pauseMs = lingerMs
  #learntMs = Number.NEGATIVE_INFINITY
  #learnNotBeforeMs = Number.NEGATIVE_INFINITY
  #learnFailures = 0
  #learning = false
  #isStale = false
  #loggedMs = Number.NEGATIVE_INFINITY
  #isEnded = false

  constructor(options: PublisherOptions) {
    this.#options = options
  }

  add(sender: JournalSender): void {
    this.#senders.add(sender)
    this.wake(0)
  }

  remove(sender: JournalSender): void {
    this.#senders.delete(sender)
  }

  wake(inMs: number): void {
    if (this.#isEnded) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#tick(), inMs)
  }

  end(): void {
    this.#isEnded = true
    clearTimeout(this.#timer)
    this.#options.sink.close()
  }

  #tick(): void {
    const nowMs = performance.now()
    const isBusy = this.#options.onTick(nowMs)
    if (nowMs - this.#learntMs > metadataMaxAgeMs || this.#isStale) void this.#learn(nowMs)
    const sent = this.#dispatch(nowMs)
    this.#pauseMs = sent || isBusy ? lingerMs : Math.min(idleMs, this.#pauseMs * 2)
    this.wake(this.#pauseMs)
  }

  async #learn(nowMs: number): Promise<void> {
    if (this.#learning || nowMs < this.#learnNotBeforeMs) return
    this.#learning = true
    this.#learnNotBeforeMs = nowMs + metadataMinAgeMs
    try {
      const topics = new Set([...this.#senders].flatMap(({ reader }) => reader.topics.map(({ name }) => name)))
      await this.#options.sink.learn([...topics])
      this.#learntMs = nowMs
      this.#learnFailures = 0
      this.#complain('', undefined)
      this.#isStale = false
    } catch (error) {
      this.#isStale = true
      this.#learnFailures += 1
      this.#learnNotBeforeMs = performance.now() + retryDelayMs(this.#learnFailures)
      const reason = reasonOf(error)
      this.#tell(nowMs, { reason }, 'Kafka does not answer; the journal keeps what is to be sent')
      if (this.#learnFailures >= failuresToSay) this.#complain('', reason)
    } finally {
      this.#learning = false
    }
    this.wake(0)
  }

  /** What holds up a partition (`topic:number`), or all of them (''). Logged when no other is held up by it. */
  #complain(place: string, reason: string | undefined): void {
    if (this.#complaints.get(place) === reason) return
    const isNew = ![...this.#complaints.values()].includes(reason ?? '')
    if (reason === undefined) this.#complaints.delete(place)
    else this.#complaints.set(place, reason)
    if (reason !== undefined && isNew)
      this.#options.log.warn({ place, reason }, 'Kafka does not accept journal records')
    this.#options.onTrouble([...new Set(this.#complaints.values())].join('; '))
  }

  #tell(nowMs: number, fields: object, event: string): void {
    if (nowMs - this.#loggedMs < logEveryMs) return
    this.#loggedMs = nowMs
    this.#options.log.warn(fields, event)
  }

  /**
   * Sends whatever waits and may go. A partition that failed goes alone until it is through, so that it holds up no
   * other.
   */
  #dispatch(nowMs: number): boolean {
    if (this.#learntMs === Number.NEGATIVE_INFINITY) return false
    const requests: Sending[] = []
    for (const sender of this.#senders) {
      const together = new Map<number, { queues: PartitionQueue[]; bytes: number }>()
      for (const queue of sender.queues) {
        if (!queue.canSend(nowMs)) continue
        const topic = sender.topicName(queue)
        const nodeId = this.#options.sink.leaderOf(topic, queue.partition)
        if (nodeId === undefined) this.#fail(sender, queue, nowMs, this.#options.sink.whyNoLeader(topic))
        else if (queue.failures > 0) requests.push({ sender, nodeId, queues: [queue] })
        else {
          const group = together.get(nodeId) ?? { queues: [], bytes: 0 }
          group.queues.push(queue)
          group.bytes += queue.memoryBytes
          if (group.bytes > requestBytesMax) {
            requests.push({ sender, nodeId, queues: group.queues })
            together.delete(nodeId)
          } else together.set(nodeId, group)
        }
      }
      for (const [nodeId, { queues }] of together) requests.push({ sender, nodeId, queues })
    }
    for (const request of requests) void this.#send(request)
    return requests.length > 0
  }

  async #send({ sender, nodeId, queues }: Sending): Promise<void> {
    this.#options.crash('send')
    const batches = queues.map((queue) => ({
      topic: sender.topicName(queue),
      partition: queue.partition,
      records: queue.nextBatch(),
    }))
    const results = await this.#options.sink.send(nodeId, batches).catch((error: unknown) => reasonOf(error))
    this.#options.crash('answer')
    if (this.#isEnded) return
    const nowMs = performance.now()
    for (const queue of queues) {
      if (typeof results === 'string') this.#fail(sender, queue, nowMs, results)
      else this.#settle(sender, queue, results, nowMs)
    }
    const mayGoOn = queues.some((queue) => queue.failures === 0 && queue.isRipe)
    if (mayGoOn) this.wake(0)
  }

  #settle(sender: JournalSender, queue: PartitionQueue, results: readonly SinkResult[], nowMs: number): void {
    const name = sender.topicName(queue)
    const result = results.find(({ topic, partition }) => topic === name && partition === queue.partition)
    if (result?.outcome === 'stored') {
      sender.acknowledge(queue, nowMs)
      this.#complain(`${name}:${queue.partition}`, undefined)
    } else if (result?.outcome === 'rejected') this.#refuse(sender, queue, result.reason, nowMs)
    else this.#fail(sender, queue, nowMs, result?.reason ?? 'no answer for it')
  }

  #refuse(sender: JournalSender, queue: PartitionQueue, reason: string, nowMs: number): void {
    const culprit = queue.bisect()
    this.wake(0)
    if (culprit === undefined) return
    const topic = sender.topicName(queue)
    const where = { base: this.#options.base, journal: sender.reader.journal, topicName: topic }
    let substitute: ReturnType<typeof quarantineRejected>
    try {
      substitute = quarantineRejected(culprit, where, reason)
    } catch (error) {
      this.#fail(sender, queue, nowMs, `${reason}, and the rejected record cannot be written to disk: ${String(error)}`)
      return
    }
    this.#options.crash('quarantine')
    if (substitute === undefined) {
      this.#fail(sender, queue, nowMs, `${reason} for a mark or a gap record`)
      return
    }
    queue.replaceFirst(substitute.record)
    this.#options.state.add('quarantined', 1, queue.topic)
    const { partition, seq } = culprit
    this.#options.log.error({ topic, partition, seq, reason, file: substitute.path }, 'record refused for good')
  }

  #fail(sender: JournalSender, queue: PartitionQueue, nowMs: number, reason: string): void {
    queue.fail(nowMs)
    this.#isStale = true
    this.#options.state.add('failedAttempts', 1)
    const fields = { topic: sender.topicName(queue), partition: queue.partition, failures: queue.failures, reason }
    this.#tell(nowMs, fields, 'records not acknowledged, sending again')
    if (queue.failures >= failuresToSay) this.#complain(`${fields.topic}:${queue.partition}`, reason)
  }
}
