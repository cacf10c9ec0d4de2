import { FairPlaces, sharerOf } from '../fair-places.ts'
import { DelayQueue, type Place, type QueueTime, type Wish } from './delay-queue.ts'

/** Whoever waits holds a connection and some kilobytes, or a body of 64 kB that was read for its cost: a busy process has as many connections. */
const waitingMaxDefault = 10_000

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
  readonly #queues = new Map<string, DelayQueue>()
  readonly #places: FairPlaces
  #closesMs: number | undefined
  #drained = () => {}

  constructor(time: QueueTime = systemQueueTime, waitingMax = waitingMaxDefault) {
    this.#time = time
    this.#places = new FairPlaces(waitingMax)
  }

  /** 0 while nobody waits, which is what every request asks first. */
  get busyKeys(): number {
    return this.#queues.size
  }

  /** Requests, those included that are decided on again just now. */
  get waiting(): number {
    return this.#places.taken
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
    if (this.#closesMs !== undefined || !this.#places.hasFor(sharerOf(wish.subject))) return undefined
    const queue = this.#queues.get(key) ?? this.#made(key, wish.roomMs)
    const place = queue.join(wish)
    if (place === undefined) return undefined
    this.#queues.set(key, queue)
    this.#places.take(sharerOf(wish.subject))
    return place
  }

  #made(key: string, roomMs: number): DelayQueue {
    return new DelayQueue(this.#time, roomMs, {
      left: (subject) => this.#places.giveBack(sharerOf(subject)),
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
