import { DelayQueue, type Place, type QueueTime, type Wish } from './delay-queue.ts'
import { SubjectCounts } from './subject-counts.ts'

/** Whoever waits holds a connection and some kilobytes, or a body of 64 kB that was read for its cost: a busy process has as many connections. */
const waitingMaxDefault = 10_000
/** Of all places: while fewer are taken, nobody is short of one, and a subject may have as many as its queues hold. */
const plentyShare = 1 / 2
/** Of all places, for one subject beyond that: it alone cannot take the rest, and a busy subject still has thousands. */
const subjectShareMax = 1 / 4

/** Real time; the timers keep a process alive until nobody waits. */
const systemQueueTime: QueueTime = {
  nowMs: () => performance.now(),
  later(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

/** All queues of this process, by the Redis keys that are waited for. Other processes have their own; Redis alone gives room. */
export class DelayQueues {
  readonly #time: QueueTime
  readonly #waitingMax: number
  readonly #queues = new Map<string, DelayQueue>()
  #waiting = 0
  readonly #places = new SubjectCounts()
  #closesMs: number | undefined
  #drained = () => {}

  constructor(time: QueueTime = systemQueueTime, waitingMax = waitingMaxDefault) {
    this.#time = time
    this.#waitingMax = waitingMax
  }

  /** 0 while nobody waits, which is what every request asks first. */
  get busyKeys(): number {
    return this.#queues.size
  }

  /** Requests, those included that are decided on again just now. */
  get waiting(): number {
    return this.#waiting
  }

  nowMs(): number {
    return this.#time.nowMs()
  }

  has(key: string): boolean {
    return this.#queues.has(key)
  }

  /** After so long somebody who came to this key now could have room; 0 where nobody waits. */
  waitMs(key: string): number {
    return this.#queues.get(key)?.waitMs ?? 0
  }

  /** Undefined for whoever may not wait: no place is left, or none for its subject, or no turn would come in time. */
  join(key: string, wish: Wish): Place | undefined {
    if (this.#closesMs !== undefined || !this.#hasPlaceFor(wish.subject)) return undefined
    const queue = this.#queues.get(key) ?? this.#made(key, wish.roomMs)
    const place = queue.join(wish)
    if (place === undefined) return undefined
    this.#queues.set(key, queue)
    this.#waiting += 1
    this.#places.add(wish.subject, 1)
    return place
  }

  #hasPlaceFor(subject: string): boolean {
    if (this.#waiting < this.#waitingMax * plentyShare) return true
    return this.#waiting < this.#waitingMax && this.#places.of(subject) < this.#waitingMax * subjectShareMax
  }

  #made(key: string, roomMs: number): DelayQueue {
    return new DelayQueue(this.#time, roomMs, {
      left: (subject) => {
        this.#waiting -= 1
        this.#places.add(subject, -1)
      },
      ended: () => {
        this.#queues.delete(key)
        if (this.#queues.size === 0) this.#drained()
      },
    })
  }

  /** Nobody new may wait; who does has its turns for so long yet. Resolves when nobody is left. */
  drain(graceMs: number): Promise<void> {
    this.#closesMs ??= this.#time.nowMs() + graceMs
    for (const queue of this.#queues.values()) queue.close(this.#closesMs)
    if (this.#queues.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const before = this.#drained
      this.#drained = () => {
        before()
        resolve()
      }
    })
  }
}
