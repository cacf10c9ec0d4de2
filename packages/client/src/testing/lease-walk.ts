import { LeaseBook, type LeaseQuestion, type LeaseReply, type Round } from '../leases/lease-book.ts'

export interface WalkRandom {
  integer(min: number, max: number): number
  oneIn(times: number): boolean
}

/** What gives units to the applications of a walk: a model, or Weir. */
export interface LeaseServer {
  /** By its clock, which stands still between two steps. */
  readonly ms: number
  pass(ms: number): void
  play(round: Round): readonly LeaseReply[] | Promise<readonly LeaseReply[]>
  /** Decides one request. */
  check(): boolean | Promise<boolean>
}

/** Leases as the applications of a walk use them. */
export class LeaseUse {
  readonly #leases = new Map<string, { readonly count: number; readonly untilMs: number; used: number }>()

  given(id: string, count: number, untilMs: number): void {
    this.#leases.set(id, { count, untilMs, used: 0 })
  }

  use(id: string, ms: number): void {
    const lease = this.#leases.get(id)
    if (lease === undefined) throw new Error(`${id} was never given`)
    lease.used += 1
    if (ms > lease.untilMs || lease.used > lease.count)
      throw new Error(`${id}: ${lease.used} of ${lease.count} used at ${ms}, until ${lease.untilMs}`)
  }

  /** Decisions of leases that nobody has settled, and that were not made. */
  unused(isSettled: (id: string) => boolean): number {
    let sum = 0
    for (const [id, { count, used }] of this.#leases) if (!isSettled(id)) sum += count - used
    return sum
  }
}

/** Makes a decision with a lease. */
type Use = (id: string) => void

/** An application: the real book, and a clock that runs a thousandth faster or slower than the server's. */
class WalkedApp {
  book = new LeaseBook(10)
  readonly #question: LeaseQuestion
  readonly #server: LeaseServer
  readonly #use: Use
  readonly #random: WalkRandom
  readonly #rate: number
  /** Rounds that are sent, each with whether the server has seen it. */
  #sent: { round: Round; sentMs: number; replies: readonly LeaseReply[] | undefined }[] = []

  constructor(server: LeaseServer, use: Use, question: LeaseQuestion, random: WalkRandom) {
    this.#server = server
    this.#use = use
    this.#question = question
    this.#random = random
    this.#rate = 1 + random.integer(-10, 10) / 10_000
  }

  get nowMs(): number {
    return this.#server.ms * this.#rate
  }

  async request(): Promise<void> {
    const found = this.book.decide(this.#question.name, this.nowMs)
    if (found !== undefined && 'id' in found) this.#use(found.id)
    else if (found === undefined) {
      this.book.askedSingly(this.#question, this.nowMs)
      await this.#server.check()
    }
  }

  send(): void {
    const round = this.book.takeRound(this.nowMs)
    if (round !== undefined) this.#sent.push({ round, sentMs: this.nowMs, replies: undefined })
  }

  /** One round goes a step further: it arrives, or is answered; either may be lost instead. */
  async carry(): Promise<void> {
    const at = this.#random.integer(0, this.#sent.length - 1)
    const one = this.#sent[at]
    if (one === undefined) return
    if (this.#random.oneIn(12)) this.book.lost(one.round, this.nowMs)
    else if (one.replies === undefined) {
      one.replies = await this.#server.play(one.round)
      return
    } else this.book.answered(one.round, one.replies, one.sentMs, this.nowMs)
    this.#sent.splice(at, 1)
  }

  /** Everything arrives and is answered, until nothing is left to be sent. */
  async rest(): Promise<void> {
    this.book.close()
    for (let rounds = 0; rounds < 100; rounds += 1) {
      this.send()
      for (const one of this.#sent.splice(0)) {
        one.replies ??= await this.#server.play(one.round)
        this.book.answered(one.round, one.replies, one.sentMs, this.nowMs)
      }
      this.#server.pass(200)
    }
  }

  kill(): void {
    this.book = new LeaseBook(10)
    this.#sent = []
  }
}

const appCount = 3

/**
 * Applications that decide with units of one limit. Between any two steps there are rounds whose question or answer is
 * late or lost, applications that are killed, and clocks that run apart. Resolves once all is given back.
 */
export async function walkLeases(
  server: LeaseServer,
  use: Use,
  question: LeaseQuestion,
  random: WalkRandom,
  steps: number,
): Promise<void> {
  const apps = Array.from({ length: appCount }, () => new WalkedApp(server, use, question, random))
  for (let step = 0; step < steps; step += 1) {
    const app = apps[random.integer(0, apps.length - 1)]
    if (app === undefined) throw new Error('no application')
    const what = random.integer(0, 99)
    if (what < 60) for (let n = random.integer(1, 8); n > 0; n -= 1) await app.request()
    else if (what < 75) app.send()
    else if (what < 90) await app.carry()
    else if (what < 99 || !random.oneIn(10)) server.pass(random.integer(1, 120))
    else app.kill()
  }
  for (const app of apps) await app.rest()
}
