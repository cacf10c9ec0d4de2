import { SortedList } from './sorted-list.ts'
import { SubjectCounts } from './subject-counts.ts'
import { TurnOrder } from './turn-order.ts'

/*
 * Who waits for room under one key of one limit. Promises:
 *
 * - fair by subject, as `turn-order.ts` says, and in places: whoever finds it full takes one of a subject that has more;
 * - bounded: in length, and nobody waits beyond their deadline. Whoever could not be served by then is not taken at all;
 * - even: turns come `spacingMs` apart, from when room is expected; a turn that finds none after all goes back to the front;
 * - nobody else's: whoever has to wait for longer than the limit takes rests aside until then, and the others have their turns meanwhile;
 * - cheap: one timer, however many wait, and a bounded piece of work whenever it runs.
 *
 * A waiter is waiting or resting, then has its turn, then is waiting again (no room after all) or has left. Time is given from outside.
 */

/** Turns under way at once, as one call of the script takes: so many are behind only where turns come every few microseconds. */
const turnsMax = 32
/** Told at once that their time is over, or that they have rested: about a millisecond of records. */
const expiredAtOnce = 200

/** A clock that is never set, and its timers. */
export interface QueueTime {
  nowMs(): number
  /** Runs it after so long; returns what cancels it. */
  later(ms: number, run: () => void): () => void
}

/** When a refusal says there is room. Both are 0 for whoever was not decided on, because others wait. */
export interface Room {
  /** In the limit that is waited for: what others may go by too. */
  readonly roomMs: number
  /** In all limits of this request; before that it need not ask. */
  readonly retryMs: number
}

/** What somebody wants who comes to a queue. */
export interface Wish extends Room {
  readonly subject: string
  /** From this turn to the next: the time in which the limit admits as much as this costs. */
  readonly spacingMs: number
  readonly deadlineMs: number
  /** Of the limit. */
  readonly queueMax: number
}

/** `over`: there was no room in time. `gone`: whoever asked has left. */
export type Turn = 'yours' | 'over' | 'gone'

/** A place in a queue. Whoever has its turn says what became of it: `refused` or `done`. */
export interface Place {
  turn(): Promise<Turn>
  /** There was no room after all. False if none can be expected in time: then the place is given up. */
  refused(room: Room): boolean
  /** Gives the place up, in every state. `used`: whether the turn took room. */
  done(used: boolean): void
  /** Whoever asked has left. */
  leave(): void
}

/** What a queue tells of itself. */
export interface QueueEvents {
  /** For each that joined, once. */
  left(subject: string): void
  /** Nobody is left; it is not to be used any more. */
  ended(): void
}

interface Waiter extends Wish {
  readonly number: number
  round: number
  restsToMs: number
  state: 'waiting' | 'resting' | 'turn' | 'left'
  isGone: boolean
  tell: (turn: Turn) => void
}

export class DelayQueue {
  readonly #time: QueueTime
  readonly #events: QueueEvents
  readonly #order = new TurnOrder<Waiter>()
  readonly #resting = new SortedList<Waiter>((a, b) => a.restsToMs - b.restsToMs || a.number - b.number)
  readonly #byDeadline = new SortedList<Waiter>((a, b) => a.deadlineMs - b.deadlineMs || a.number - b.number)
  /** Places, in whatever state. */
  readonly #places = new SubjectCounts()
  #count = 0
  #turns = 0
  /** When the next turn comes. */
  #nextMs: number
  #closesMs = Number.POSITIVE_INFINITY
  #armedMs = Number.POSITIVE_INFINITY
  #cancel = () => {}

  /** `roomMs`: after so long there is room. */
  constructor(time: QueueTime, roomMs: number, events: QueueEvents) {
    this.#time = time
    this.#events = events
    this.#nextMs = time.nowMs() + roomMs
  }

  /** Waiting, resting, or having their turn. */
  get size(): number {
    return this.#order.size + this.#resting.size + this.#turns
  }

  /** After so long somebody who came now would have their turn. */
  get waitMs(): number {
    return Math.max(0, this.#nextMs + this.#order.spacingMs - this.#time.nowMs())
  }

  /**
   * Undefined for whoever could not have a turn in time, or finds it full. Full it is only for subjects with as many in it as any
   * other: else whoever would have the last turn is told that its time is over, or one subject could take all places.
   */
  join(wish: Wish): Place | undefined {
    const isFull = this.size >= wish.queueMax
    const last = isFull ? this.#lastFor(wish.subject) : undefined
    if (isFull && last === undefined) return undefined
    const own = { number: this.#count, round: 0, restsToMs: 0, state: 'waiting', isGone: false } as const
    const waiter: Waiter = { ...wish, ...own, tell: () => {} }
    const nowMs = this.#time.nowMs()
    const turnMs = Math.max(this.#nextMs, nowMs) + this.#order.aheadMs(wish.subject)
    if (Math.max(turnMs, nowMs + wish.roomMs, nowMs + wish.retryMs) > this.#endOf(waiter)) return undefined
    if (last !== undefined) this.#dismiss(last, 'over')
    this.#count += 1
    this.#places.add(wish.subject, 1)
    this.#wait(waiter, wish, true)
    this.#arm()
    return this.#placeOf(waiter)
  }

  /** From then on everybody's time is over. */
  close(closesMs: number): void {
    this.#closesMs = closesMs
    this.#arm()
  }

  /** Who gives way to one more of the subject, in a queue that is full. */
  #lastFor(subject: string): Waiter | undefined {
    const { last } = this.#order
    const resting = this.#resting.last
    const placesOf = (waiter: Waiter | undefined) => (waiter === undefined ? 0 : this.#places.of(waiter.subject))
    const most = placesOf(resting) > placesOf(last) ? resting : last
    return placesOf(most) > this.#places.of(subject) + 1 ? most : undefined
  }

  #placeOf(waiter: Waiter): Place {
    return {
      turn: () =>
        new Promise((resolve) => {
          if (waiter.state === 'left') resolve(waiter.isGone ? 'gone' : 'over')
          else waiter.tell = resolve
        }),
      refused: (room) => this.#refused(waiter, room),
      done: (used) => this.#leave(waiter, used),
      leave: () => {
        waiter.isGone = true
        // Whoever has its turn is being decided on: that is waited for.
        if (waiter.state === 'waiting' || waiter.state === 'resting') this.#dismiss(waiter, 'gone')
      },
    }
  }

  #wait(waiter: Waiter, { roomMs, retryMs }: Room, isNew: boolean): void {
    this.#byDeadline.add(waiter)
    if (retryMs > roomMs) {
      waiter.state = 'resting'
      waiter.restsToMs = this.#time.nowMs() + retryMs
      this.#resting.add(waiter)
      return
    }
    waiter.state = 'waiting'
    // Room of a time when nobody could take it is not made up for.
    if (this.#order.size + this.#turns === 0) this.#nextMs = Math.max(this.#nextMs, this.#time.nowMs())
    if (isNew) this.#order.add(waiter)
    else this.#order.putBack(waiter)
  }

  #unwait(waiter: Waiter): void {
    this.#byDeadline.remove(waiter)
    if (waiter.state === 'resting') this.#resting.remove(waiter)
    else this.#order.remove(waiter)
  }

  #refused(waiter: Waiter, room: Room): boolean {
    if (waiter.state !== 'turn') return false
    this.#turns -= 1
    const nowMs = this.#time.nowMs()
    const nextMs = Math.max(this.#nextMs - waiter.spacingMs, nowMs + room.roomMs)
    const isHopeless = waiter.isGone || Math.max(nextMs, nowMs + room.retryMs) > this.#endOf(waiter)
    if (isHopeless) {
      // What it was told may be true of its cost and its limits alone: the next turn comes as if this had been used.
      this.#setLeft(waiter)
    } else {
      this.#nextMs = nextMs
      this.#wait(waiter, room, false)
    }
    this.#arm()
    return !isHopeless
  }

  #leave(waiter: Waiter, used: boolean): void {
    if (waiter.state === 'left') return
    if (waiter.state !== 'turn') {
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
    this.#places.add(waiter.subject, -1)
    this.#events.left(waiter.subject)
  }

  /** Whoever could have no turn after this is not kept. */
  #endOf({ deadlineMs }: Waiter): number {
    return Math.min(deadlineMs, this.#closesMs)
  }

  /** Sets the one timer to what comes first, or ends the queue. */
  #arm(): void {
    if (this.size === 0) {
      this.#cancel()
      this.#armedMs = Number.POSITIVE_INFINITY
      this.#events.ended()
      return
    }
    const soonest = this.#byDeadline.first
    const turnMs = this.#order.size > 0 && this.#turns < turnsMax ? this.#nextMs : Number.POSITIVE_INFINITY
    const restedMs = this.#resting.first?.restsToMs ?? Number.POSITIVE_INFINITY
    const overMs = soonest === undefined ? Number.POSITIVE_INFINITY : this.#endOf(soonest)
    const atMs = Math.min(turnMs, restedMs, overMs)
    if (atMs === this.#armedMs) return
    this.#cancel()
    this.#armedMs = atMs
    if (atMs === Number.POSITIVE_INFINITY) return
    this.#cancel = this.#time.later(Math.max(0, Math.ceil(atMs - this.#time.nowMs())), () => this.#run())
  }

  #run(): void {
    this.#armedMs = Number.POSITIVE_INFINITY
    const nowMs = this.#time.nowMs()
    this.#wakeRested(nowMs)
    let { first } = this.#order
    while (first !== undefined && this.#turns < turnsMax && this.#nextMs <= nowMs && this.#endOf(first) >= nowMs) {
      this.#giveTurn()
      first = this.#order.first
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

  #wakeRested(nowMs: number): void {
    let { first } = this.#resting
    for (let woken = 0; woken < expiredAtOnce && first !== undefined && first.restsToMs <= nowMs; woken += 1) {
      this.#unwait(first)
      this.#wait(first, { roomMs: 0, retryMs: 0 }, true)
      first = this.#resting.first
    }
  }

  #giveTurn(): void {
    const waiter = this.#order.takeFirst()
    if (waiter === undefined) return
    this.#byDeadline.remove(waiter)
    waiter.state = 'turn'
    this.#turns += 1
    this.#nextMs += waiter.spacingMs
    waiter.tell('yours')
  }
}
