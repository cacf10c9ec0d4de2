import { FairSlots, sharerOf } from '../fair-slots.ts'
import { DelayQueue, type EnqueueRequest, type QueueTicket } from './delay-queue.ts'

/**
 * A waiting request holds a connection and some kilobytes, or a body of 64 kB: a busy process has as many connections.
 */
const waitingMaxDefault = 10_000

/**
 * All queues of this process, by the counts that are waited for. Other processes have their own; Redis alone admits.
 */
export class DelayQueues {
  readonly #queues = new Map<string, DelayQueue>()
  readonly #slots: FairSlots
  readonly #drained = Promise.withResolvers<void>()
  #closesMs: number | undefined

  /** @param waitingMax given by tests */
  constructor(waitingMax: number = waitingMaxDefault) {
    this.#slots = new FairSlots(waitingMax)
  }

  /** Counts that requests wait for. Every request asks first whether it is 0. */
  get busyKeys(): number {
    return this.#queues.size
  }

  /** Waiting requests, including those that are being decided again just now. */
  get waiting(): number {
    return this.#slots.taken
  }

  has(key: string): boolean {
    return this.#queues.has(key)
  }

  /** A unit of this count was given back. */
  expect(key: string): void {
    this.#queues.get(key)?.expect()
  }

  /** How long a request that came now would wait under this key; 0 where none waits. */
  waitMs(key: string): number {
    return this.#queues.get(key)?.waitMs ?? 0
  }

  /**
   * Undefined where the request may not wait: no slot is left, or none for its subject, or capacity would come too
   * late.
   */
  enqueue(key: string, request: EnqueueRequest): QueueTicket | undefined {
    const sharer = sharerOf(request.subject)
    if (this.#closesMs !== undefined || !this.#slots.hasFor(sharer)) return undefined
    const queue = this.#queues.get(key) ?? this.#newQueue(key, request.capacityMs)
    const ticket = queue.enqueue(request)
    if (ticket === undefined) return undefined
    this.#queues.set(key, queue)
    this.#slots.take(sharer)
    return ticket
  }

  #newQueue(key: string, capacityMs: number): DelayQueue {
    const released = (subject: string) => this.#slots.release(sharerOf(subject))
    return new DelayQueue(capacityMs, released, () => {
      this.#queues.delete(key)
      if (this.#closesMs !== undefined && this.#queues.size === 0) this.#drained.resolve()
    })
  }

  /** Accepts no new requests; those that wait are served for `graceMs` more. Resolves when none is left. */
  async drain(graceMs: number): Promise<void> {
    this.#closesMs ??= performance.now() + graceMs
    for (const queue of this.#queues.values()) queue.close(this.#closesMs)
    if (this.#queues.size > 0) await this.#drained.promise
  }
}
