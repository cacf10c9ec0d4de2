import { expect, test } from 'vitest'
import { type LeaseServer, LeaseUse, type WalkRandom, walkLeases } from '../testing/lease-walk.ts'
import type { GivenLease, LeaseReply, Round } from './lease-book.ts'

/* The real book of applications against a model of the server, which gives and takes back as docs/leases.md says. */

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

const [windowMs, lifeMs] = [10_000, 2_000]
/** Used up long before the end of a window, and never. */
const sizes = [3_000, 8_000] as const

interface ServerLease {
  readonly count: number
  readonly windowEndMs: number
  isSettled: boolean
}

/** The limit, by the server's clock, and what the records add up to. */
class Server implements LeaseServer {
  ms = 0
  readonly leases = new Map<string, ServerLease>()
  readonly uses = new LeaseUse()
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
    const leftMs = this.#windowEndMs - this.ms
    const endsMs = this.#mutant === 'leases outlive their window' ? lifeMs : Math.min(lifeMs, leftMs)
    this.charged += count
    if (this.#mutant !== 'a lease is not recorded') this.counted += count
    const id = `lease-${this.leases.size}`
    this.leases.set(id, { count, windowEndMs: this.#windowEndMs, isSettled: false })
    this.uses.given(id, count, this.ms + Math.min(endsMs, leftMs))
    const given: GivenLease = { id, subject: 'acme', count, cost: 1, endsMs, lifeMs, limits: [], headers: [] }
    return given
  }

  use(id: string): void {
    this.uses.use(id, this.ms)
    this.admit()
  }
}

/** Plays so many steps, and returns what is wrong in the end, and what was out when something was killed or lost. */
async function play(random: WalkRandom, steps: number, mutant?: Mutant) {
  const server = new Server(sizes[random.integer(0, 1)] ?? sizes[0], mutant)
  await walkLeases(server, (id) => server.use(id), { name: 'acme', body: {} }, random, steps)
  const used = [...server.admitted.values()].reduce((sum, count) => sum + count, 0)
  const unused = server.uses.unused((id) => server.leases.get(id)?.isSettled === true)
  return { used, unused, counted: server.counted, isAbove: Math.max(...server.admitted.values()) > server.size }
}

test('In no window more is admitted than the limit has, and what is counted is what was used and what was out', async () => {
  const random = createSeededRandom()
  for (let walk = 0; walk < 60; walk += 1) {
    const { used, unused, counted, isAbove } = await play(random, 3_000)
    expect([random.seed, walk, isAbove, counted]).toEqual([random.seed, walk, false, used + unused])
  }
})

const mutants: readonly Mutant[] = [
  'leases outlive their window',
  'a settlement counts twice',
  'a lease is not recorded',
]
test.each(mutants)('The walks find it where %s', async (mutant) => {
  const random = createSeededRandom(47)
  const walks = async () => {
    for (let walk = 0; walk < 20; walk += 1) {
      const { used, unused, counted, isAbove } = await play(random, 3_000, mutant)
      if (isAbove || counted !== used + unused) throw new Error(`counted ${counted} of ${used} and ${unused}`)
    }
  }
  await expect(walks).rejects.toThrow()
})
