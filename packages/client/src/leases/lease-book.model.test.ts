import { expect, test } from 'vitest'
import { type GivenLease, LeaseBook, type LeaseQuestion, type LeaseReply, type Round } from './lease-book.ts'

/*
 * A model of applications that decide with units of one limit: the real book of each, a server that gives and takes
 * back as docs/leases.md says, and between any two steps rounds whose question or answer is late or lost, applications
 * that are killed, and clocks that run apart.
 */

type SeededRandom = ReturnType<typeof createSeededRandom>

/** mulberry32; WEIR_TEST_SEED repeats a walk. */
function createSeededRandom(seed = Number(process.env.WEIR_TEST_SEED ?? Date.now() % 2 ** 31)) {
  let state = seed
  const integer = (min: number, max: number) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return min + Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * (max - min + 1))
  }
  return { seed, integer, oneIn: (times: number) => integer(1, times) === 1 }
}

/** Faults, for the test that shows that the model finds them. */
type Mutant = 'leases outlive their window' | 'a settlement counts twice' | 'a lease is not recorded'

const [windowMs, lifeMs, appCount] = [10_000, 2_000, 3]
/** Used up long before the end of a window, and never. */
const sizes = [3_000, 8_000] as const
const question: LeaseQuestion = { name: 'acme', body: {} }

interface ServerLease {
  readonly count: number
  readonly windowEndMs: number
  readonly untilMs: number
  isSettled: boolean
  used: number
}

/** The limit, by the server's clock, and what the records add up to. */
class Server {
  ms = 0
  readonly leases = new Map<string, ServerLease>()
  readonly size: number
  readonly #mutant: Mutant | undefined
  #windowEndMs = windowMs
  charged = 0
  /** Decisions by all records and corrections. */
  counted = 0
  /** By window: decisions that were really made. */
  readonly admitted = new Map<number, number>()

  constructor(size: number, mutant: Mutant | undefined) {
    this.size = size
    this.#mutant = mutant
  }

  pass(ms: number): void {
    this.ms += ms
    if (this.ms < this.#windowEndMs) return
    this.#windowEndMs = (Math.floor(this.ms / windowMs) + 1) * windowMs
    this.charged = 0
  }

  admit(): void {
    this.admitted.set(this.#windowEndMs, (this.admitted.get(this.#windowEndMs) ?? 0) + 1)
  }

  check(): boolean {
    if (this.charged >= this.size) return false
    this.charged += 1
    this.counted += 1
    this.admit()
    return true
  }

  play(round: Round): LeaseReply[] {
    for (const { id, cost } of round.settle) this.#settle(id, cost)
    return round.lease.map(({ want }) => this.#lease(want))
  }

  #settle(id: string, used: number): void {
    const lease = this.leases.get(id)
    if (lease === undefined || (lease.isSettled && this.#mutant !== 'a settlement counts twice')) return
    lease.isSettled = true
    if (lease.windowEndMs === this.#windowEndMs) this.charged -= lease.count - used
    this.counted -= lease.count - used
  }

  #lease(want: number): LeaseReply {
    const count = Math.min(want, Math.floor((this.size - this.charged) / 8))
    if (count < 8) return { plainMs: 1_000 }
    const outlives = this.#mutant === 'leases outlive their window'
    const endsMs = outlives ? lifeMs : Math.min(lifeMs, this.#windowEndMs - this.ms)
    this.charged += count
    if (this.#mutant !== 'a lease is not recorded') this.counted += count
    const id = `lease-${this.leases.size}`
    const lease = { count, windowEndMs: this.#windowEndMs, untilMs: this.ms + endsMs, isSettled: false, used: 0 }
    this.leases.set(id, lease)
    const given: GivenLease = { id, subject: 'acme', count, cost: 1, endsMs, lifeMs, limits: [], headers: [] }
    return given
  }

  /** An application decides with a lease. */
  use(id: string): void {
    const lease = this.leases.get(id)
    if (lease === undefined) throw new Error(`${id} was never given`)
    lease.used += 1
    this.admit()
    const isInTime = this.ms <= lease.untilMs && this.ms <= lease.windowEndMs
    if (!isInTime || lease.used > lease.count)
      throw new Error(`${id}: ${lease.used} of ${lease.count} used at ${this.ms}`)
  }
}

/** An application: its book, and a clock that runs a thousandth faster or slower than the server's. */
class App {
  book = new LeaseBook(10)
  readonly #server: Server
  readonly #random: SeededRandom
  readonly #rate: number
  /** Rounds that are sent, each with whether the server has seen it. */
  #sent: { round: Round; sentMs: number; replies: LeaseReply[] | undefined }[] = []

  constructor(server: Server, random: SeededRandom) {
    this.#server = server
    this.#random = random
    this.#rate = 1 + random.integer(-10, 10) / 10_000
  }

  get nowMs(): number {
    return this.#server.ms * this.#rate
  }

  request(): void {
    const found = this.book.decide(question.name, this.nowMs)
    if (found !== undefined && 'id' in found) this.#server.use(found.id)
    else if (found === undefined) {
      this.book.askedSingly(question, this.nowMs)
      this.#server.check()
    }
  }

  send(): void {
    const round = this.book.takeRound(this.nowMs)
    if (round !== undefined) this.#sent.push({ round, sentMs: this.nowMs, replies: undefined })
  }

  /** One round goes a step further: it arrives, or is answered; either may be lost instead. */
  carry(): void {
    const at = this.#random.integer(0, this.#sent.length - 1)
    const one = this.#sent[at]
    if (one === undefined) return
    if (this.#random.oneIn(12)) this.book.lost(one.round, this.nowMs)
    else if (one.replies === undefined) {
      one.replies = this.#server.play(one.round)
      return
    } else this.book.answered(one.round, one.replies, one.sentMs, this.nowMs)
    this.#sent.splice(at, 1)
  }

  /** Everything arrives and is answered, until nothing is left to be sent. */
  rest(): void {
    this.book.close()
    for (let rounds = 0; rounds < 100; rounds += 1) {
      this.send()
      for (const one of this.#sent.splice(0)) {
        one.replies ??= this.#server.play(one.round)
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

/** Plays so many steps, and returns what is wrong in the end, and what was out when something was killed or lost. */
function play(random: SeededRandom, steps: number, mutant?: Mutant) {
  const server = new Server(sizes[random.integer(0, 1)] ?? sizes[0], mutant)
  const apps = Array.from({ length: appCount }, () => new App(server, random))
  const [first] = apps
  if (first === undefined) throw new Error('no application')
  for (let step = 0; step < steps; step += 1) {
    const app = apps[random.integer(0, apps.length - 1)] ?? first
    const what = random.integer(0, 99)
    if (what < 60) for (let n = random.integer(1, 8); n > 0; n -= 1) app.request()
    else if (what < 75) app.send()
    else if (what < 90) app.carry()
    else if (what < 99 || !random.oneIn(10)) server.pass(random.integer(1, 120))
    else app.kill()
  }
  for (const app of apps) app.rest()
  const used = [...server.admitted.values()].reduce((sum, count) => sum + count, 0)
  const open = [...server.leases.values()].filter(({ isSettled }) => !isSettled)
  const unused = open.reduce((sum, lease) => sum + lease.count - lease.used, 0)
  return { used, unused, counted: server.counted, isAbove: Math.max(...server.admitted.values()) > server.size }
}

test('In no window more is admitted than the limit has, and what is counted is what was used and what was out', () => {
  const random = createSeededRandom()
  for (let walk = 0; walk < 60; walk += 1) {
    const { used, unused, counted, isAbove } = play(random, 3_000)
    expect([random.seed, walk, isAbove, counted]).toEqual([random.seed, walk, false, used + unused])
  }
})

const mutants: readonly Mutant[] = [
  'leases outlive their window',
  'a settlement counts twice',
  'a lease is not recorded',
]
test.each(mutants)('The walks find it where %s', (mutant) => {
  const random = createSeededRandom(47)
  const walks = () => {
    for (let walk = 0; walk < 20; walk += 1) {
      const { used, unused, counted, isAbove } = play(random, 3_000, mutant)
      if (isAbove || counted !== used + unused) throw new Error(`counted ${counted} of ${used} and ${unused}`)
    }
  }
  expect(walks).toThrow()
})
