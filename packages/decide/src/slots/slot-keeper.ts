import type { SlotCharge, SlotStore } from '@weir/core/limits/limit-store.ts'

/*
 * Holds the slots of requests in flight through this process. Promises:
 *
 * - A slot ends 30 s (at most 32) after its process died: it is renewed every 10 s while its request lasts.
 * - A request gives its slots back once. Where Redis does not answer, they end by themselves.
 * - A renewal says what is true, whether it fits or not: slots that Redis forgot are there again within 10 s.
 */

/** How long a slot lasts without a renewal: two in a row may fail. */
export const slotMs = 30_000
const renewAfterMs = 10_000
/** A round renews what is due. It begins this often, so that requests of one moment are not renewed in one call. */
const roundMs = 1_000
/** Renewals under way, below the requests that may wait for a call to Redis. */
const togetherMax = 256

interface OpenSlot {
  slot: SlotCharge
  dueMs: number
  isReleased: boolean
  isRenewing: boolean
}

/** Renews the slots of requests in flight, and gives them back at their end. */
export class SlotKeeper {
  readonly #store: SlotStore
  readonly #freed: (slot: SlotCharge) => void
  readonly #open = new Set<OpenSlot>()
  #timer: NodeJS.Timeout | undefined
  #isRunning = false

  /** @param freed called once Redis has a slot back: others may wait for it */
  constructor(store: SlotStore, freed: (slot: SlotCharge) => void) {
    this.#store = store
    this.#freed = freed
  }

  /** Slots that this process holds. */
  get held(): number {
    return this.#open.size
  }

  /** Holds what a decision took. Returns what gives it back; to be called at the request's end, once or more. */
  hold(slots: readonly SlotCharge[]): () => void {
    const opened = slots.map((slot): OpenSlot => {
      return { slot, dueMs: performance.now() + renewAfterMs, isReleased: false, isRenewing: false }
    })
    for (const one of opened) this.#open.add(one)
    this.#timer ??= setInterval(() => void this.#renewDue(), roundMs).unref()
    return () => {
      for (const one of opened) this.#release(one)
    }
  }

  #release(one: OpenSlot): void {
    if (one.isReleased) return
    one.isReleased = true
    this.#open.delete(one)
    if (this.#open.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    // A renewal under way would take it again: it is given back after that.
    if (!one.isRenewing) this.#giveBack(one.slot)
  }

  #giveBack(slot: SlotCharge): void {
    const done = () => this.#freed(slot)
    this.#store.release(slot).then(done, done)
  }

  async #renewDue(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    const due = [...this.#open].filter(({ dueMs }) => dueMs <= performance.now())
    for (let from = 0; from < due.length; from += togetherMax) {
      await Promise.all(due.slice(from, from + togetherMax).map((one) => this.#renew(one)))
    }
    this.#isRunning = false
  }

  async #renew(one: OpenSlot): Promise<void> {
    if (one.isReleased) return
    one.isRenewing = true
    const atUs = await this.#store.renew(one.slot).catch(() => 0)
    one.isRenewing = false
    if (atUs > 0) one.slot = { ...one.slot, atUs }
    one.dueMs = performance.now() + renewAfterMs
    if (one.isReleased) this.#giveBack(one.slot)
  }
}
