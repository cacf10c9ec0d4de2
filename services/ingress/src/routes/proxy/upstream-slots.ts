import { FairSlots, sharerOf } from '@weir/decide/fair-slots.ts'

/**
 * The slots of one upstream: requests that have a connection, and behind them those that wait for one. Each kind is
 * shared fairly by subject, because a subject with all connections would make all waiting requests wait for it.
 */
export class UpstreamSlots {
  readonly #connections: FairSlots
  readonly #waiting: FairSlots
  /** In the order in which they came; at most `waitingMax`. */
  readonly #queue = new Set<Slot>()
  #isFreed = false
  #isPassing = false

  constructor(connectionsMax: number, waitingMax: number, subjectShare: number) {
    this.#connections = new FairSlots(connectionsMax, subjectShare)
    this.#waiting = new FairSlots(waitingMax, subjectShare)
  }

  /** Whether any request waits. */
  get isBusy(): boolean {
    return this.#queue.size > 0
  }

  hasFor(subject: string): boolean {
    const sharer = sharerOf(subject)
    return this.#connections.hasFor(sharer) || this.#waiting.hasFor(sharer)
  }

  /** Takes a connection, or else a slot in the queue; undefined if neither is left for the subject. */
  enter(subject: string): Slot | undefined {
    const sharer = sharerOf(subject)
    if (this.#connections.hasFor(sharer)) {
      this.#connections.take(sharer)
      return new Slot(sharer, true, this.#left)
    }
    if (!this.#waiting.hasFor(sharer)) return undefined
    this.#waiting.take(sharer)
    const slot = new Slot(sharer, false, this.#left)
    this.#queue.add(slot)
    return slot
  }

  readonly #left = (slot: Slot) => {
    if (this.#queue.delete(slot)) this.#waiting.release(slot.sharer)
    else this.#connections.release(slot.sharer)
    this.#isFreed = true
    // One that gets a connection may leave at once, as all do whose upstream is closed: the loop goes on, none deeper.
    if (this.#isPassing) return
    this.#isPassing = true
    try {
      while (this.#isFreed && this.#queue.size > 0) this.#passOn()
    } finally {
      this.#isPassing = false
    }
  }

  #passOn(): void {
    this.#isFreed = false
    // Not only the first is tried: it may wait because of its own subject's connections.
    for (const next of this.#queue) {
      if (!this.#connections.hasFor(next.sharer)) continue
      this.#queue.delete(next)
      this.#waiting.release(next.sharer)
      this.#connections.take(next.sharer)
      next.connect()
    }
  }
}

/** The slot of one request: in the queue, then with a connection, then left. */
export class Slot {
  readonly sharer: string
  #state: 'waits' | 'connected' | 'left'
  readonly #left: (slot: Slot) => void
  #timer: NodeJS.Timeout | undefined
  #whenConnected: (() => void) | undefined

  constructor(sharer: string, isConnected: boolean, left: (slot: Slot) => void) {
    this.sharer = sharer
    this.#state = isConnected ? 'connected' : 'waits'
    this.#left = left
  }

  /** Runs `then` now or when a connection is free; after `waitMsMax` it leaves the slot and runs `overdue`. */
  whenConnected(waitMsMax: number, then: () => void, overdue: () => void): void {
    if (this.#state === 'connected') {
      then()
      return
    }
    this.#whenConnected = then
    this.#timer = setTimeout(() => {
      this.leave()
      overdue()
    }, waitMsMax)
  }

  /** Called by `UpstreamSlots` when a connection is free. */
  connect(): void {
    this.#state = 'connected'
    clearTimeout(this.#timer)
    this.#whenConnected?.()
  }

  /** Gives the slot up if it is still one in the queue. */
  stopWaiting(): void {
    if (this.#state === 'waits') this.leave()
  }

  /** May be called again, which does nothing. */
  leave(): void {
    if (this.#state === 'left') return
    this.#state = 'left'
    clearTimeout(this.#timer)
    this.#left(this)
  }
}
