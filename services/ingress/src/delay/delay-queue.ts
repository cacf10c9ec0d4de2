import { SortedList } from './sorted-list.ts'

/*
 * Who waits for room under one key of one limit. Promises:
 *
 * - fair by subject: in a round every subject that waits has one turn, and within a subject who came first goes first;
 * - bounded: in length, and nobody waits beyond their deadline. Whoever could not be served by then is not taken at all;
 * - even: turns come `spacingMs` apart, from when room is expected; a turn that finds none after all goes back to the front;
 * - cheap: one timer, however many wait, and a bounded piece of work whenever it runs.
 *
 * A waiter is waiting, then has its turn, then is waiting again (no room after all) or has left. Time is given from outside.
 */

/** Turns under way at once, as one call of the script takes: so many are behind only where turns come every few microseconds. */
const turnsMax = 32
/** Told at once that their time is over: about a millisecond of records. */
const expiredAtOnce = 200

/** A clock that is never set, and its timers. */
export interface QueueTime {
  nowMs(): number
  /** Runs it after so long; returns what cancels it. */
  later(ms: number, run: () => void): () => void
}

/** What somebody wants who comes to a queue. */
export interface Wish {
  readonly subject: string
  /** From this turn to the next: the time in which the limit admits as much as this costs. */
  readonly spacingMs: number
  readonly deadlineMs: number
  /** Of the limit. */
  readonly queueMax: number
  /** As the refusal said; 0 for whoever was not decided on, because others wait. */
  readonly retryMs: number
}

/** `over`: there was no room in time. `gone`: whoever asked has left. */
export type Turn = 'yours' | 'over' | 'gone'

/** A place in a queue. Whoever has its turn says what became of it: `refused` or `done`. */
export interface Place {
  turn(): Promise<Turn>
  /** There was no room after all. False if none can be expected in time: then the place is given up. */
  refused(retryMs: number): boolean
  /** Gives the place up, in every state. `used`: whether the turn took room. */
  done(used: boolean): void
  /** Whoever asked has left. */
  leave(): void
}

/** What a queue tells of itself. */
export interface QueueEvents {
  /** For each that joined, once. */
  left(): void
  /** Nobody is left; it is not to be used any more. */
  ended(): void
}

interface Waiter extends Wish {
  readonly round: number
  readonly number: number
  state: 'waiting' | 'turn' | 'left'
  isGone: boolean
  tell: (turn: Turn) => void
}

export class DelayQueue {
  readonly #time: QueueTime
  readonly #events: QueueEvents
  readonly #order = new SortedList<Waiter>((a, b) => a.round - b.round || a.number - b.number)
  readonly #byDeadline = new SortedList<Waiter>((a, b) => a.deadlineMs - b.deadlineMs || a.number - b.number)
  /** The last round of each subject that may still be ahead of the current one. */
  readonly #rounds = new Map<string, number>()
  #round = 0
  #count = 0
  #turns = 0
  /** When the next turn comes. */
  #nextMs: number
  /** Of all who wait, together. */
  #spacingMs = 0
  #closesMs = Number.POSITIVE_INFINITY
  #armedMs = Number.POSITIVE_INFINITY
  #cancel = () => {}

  /** `roomMs`: after so long there is room. */
  constructor(time: QueueTime, roomMs: number, events: QueueEvents) {
    this.#time = time
    this.#events = events
    this.#nextMs = time.nowMs() + roomMs
  }

  /** Waiting, or having their turn. */
  get size(): number {
    return this.#order.size + this.#turns
  }

  /** After so long somebody who came now would have their turn. */
  get waitMs(): number {
    return Math.max(0, this.#nextMs + this.#spacingMs - this.#time.nowMs())
  }

  /**
   * Undefined for whoever could not have a turn in time, or finds it full. Full it is only for subjects with as many in it as any
   * other: else whoever would have the last turn is told that its time is over, or one subject could take all places.
   */
  join(wish: Wish): Place | undefined {
    const before = this.#rounds.get(wish.subject)
    const round = before === undefined ? this.#round : Math.max(this.#round, before + 1)
    const last = this.#order.last
    const isFull = this.size >= wish.queueMax
    if (isFull && (last === undefined || last.round <= round)) return undefined
    const waiter: Waiter = { ...wish, round, number: this.#count, state: 'waiting', isGone: false, tell: () => {} }
    if (this.#expectedMs(waiter) > this.#endOf(waiter)) return undefined
    if (isFull && last !== undefined) this.#dismiss(last, 'over')
    this.#count += 1
    this.#rounds.set(wish.subject, round)
    this.#wait(waiter)
    this.#arm()
    return this.#placeOf(waiter)
  }

  /** From then on everybody's time is over. */
  close(closesMs: number): void {
    this.#closesMs = closesMs
    this.#arm()
  }

  #expectedMs(waiter: Waiter): number {
    const last = this.#order.last
    let atMs = this.#nextMs
    if (last !== undefined && last.round <= waiter.round) atMs += this.#spacingMs
    else for (const { spacingMs } of this.#order.before(waiter)) atMs += spacingMs
    return Math.max(atMs, this.#time.nowMs() + waiter.retryMs)
  }

  #placeOf(waiter: Waiter): Place {
    return {
      turn: () =>
        new Promise((resolve) => {
          if (waiter.state === 'left') resolve(waiter.isGone ? 'gone' : 'over')
          else waiter.tell = resolve
        }),
      refused: (retryMs) => this.#refused(waiter, retryMs),
      done: (used) => this.#leave(waiter, used),
      leave: () => {
        waiter.isGone = true
        // Whoever has its turn is being decided on: that is waited for.
        if (waiter.state === 'waiting') this.#dismiss(waiter, 'gone')
      },
    }
  }

  #wait(waiter: Waiter): void {
    waiter.state = 'waiting'
    this.#order.add(waiter)
    this.#byDeadline.add(waiter)
    this.#spacingMs += waiter.spacingMs
  }

  #unwait(waiter: Waiter): void {
    this.#order.remove(waiter)
    this.#byDeadline.remove(waiter)
    this.#spacingMs -= waiter.spacingMs
  }

  #refused(waiter: Waiter, retryMs: number): boolean {
    if (waiter.state !== 'turn') return false
    this.#turns -= 1
    this.#nextMs = Math.max(this.#nextMs - waiter.spacingMs, this.#time.nowMs() + retryMs)
    const isHopeless = waiter.isGone || this.#nextMs > this.#endOf(waiter)
    if (isHopeless) this.#setLeft(waiter)
    else this.#wait(waiter)
    this.#arm()
    return !isHopeless
  }

  #leave(waiter: Waiter, used: boolean): void {
    if (waiter.state === 'left') return
    if (waiter.state === 'waiting') {
      this.#dismiss(waiter, 'gone')
      return
    }
    this.#setLeft(waiter)
    this.#turns -= 1
    if (!used) this.#nextMs -= waiter.spacingMs
    this.#arm()
  }

  #dismiss(waiter: Waiter, why: 'over' | 'gone'): void {
    this.#unwait(waiter)
    this.#setLeft(waiter)
    waiter.tell(why)
    this.#arm()
  }

  #setLeft(waiter: Waiter): void {
    waiter.state = 'left'
    this.#events.left()
  }

  /** Whoever could have no turn after this is not kept. */
  #endOf({ deadlineMs }: Waiter): number {
    return Math.min(deadlineMs, this.#closesMs)
  }

  /** Sets the one timer to what comes first, or ends the queue. */
  #arm(): void {
    const [next, soonest] = [this.#order.first, this.#byDeadline.first]
    if (next === undefined && this.#turns === 0) {
      this.#cancel()
      this.#armedMs = Number.POSITIVE_INFINITY
      this.#events.ended()
      return
    }
    const turnMs = next !== undefined && this.#turns < turnsMax ? this.#nextMs : Number.POSITIVE_INFINITY
    const overMs = soonest === undefined ? Number.POSITIVE_INFINITY : this.#endOf(soonest)
    const atMs = Math.min(turnMs, overMs)
    if (atMs === this.#armedMs) return
    this.#cancel()
    this.#armedMs = atMs
    if (atMs === Number.POSITIVE_INFINITY) return
    this.#cancel = this.#time.later(Math.max(0, Math.ceil(atMs - this.#time.nowMs())), () => this.#run())
  }

  #run(): void {
    this.#armedMs = Number.POSITIVE_INFINITY
    const nowMs = this.#time.nowMs()
    let next = this.#order.first
    while (next !== undefined && this.#turns < turnsMax && this.#nextMs <= nowMs && this.#endOf(next) >= nowMs) {
      this.#giveTurn(next)
      next = this.#order.first
    }
    let soonest = this.#byDeadline.first
    for (let told = 0; told < expiredAtOnce && soonest !== undefined && this.#endOf(soonest) <= nowMs; told += 1) {
      this.#unwait(soonest)
      this.#setLeft(soonest)
      soonest.tell('over')
      soonest = this.#byDeadline.first
    }
    this.#arm()
  }

  #giveTurn(waiter: Waiter): void {
    this.#unwait(waiter)
    waiter.state = 'turn'
    this.#turns += 1
    this.#nextMs += waiter.spacingMs
    if (waiter.round > this.#round) {
      this.#round = waiter.round
      // Whoever had a turn in this round comes again in the next; of rounds before nothing need be known.
      for (const [subject, round] of this.#rounds) if (round < this.#round) this.#rounds.delete(subject)
    }
    waiter.tell('yours')
  }
}
