import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import type { CallParts } from '@weir/core/limits/script-codec.ts'

/** Slots of a gateway, to be counted as refused (`renew`) or given back. */
export interface LaterSlot {
  readonly kind: 'refund' | 'renew'
  readonly request: LimitRequest
  /** Which slots, and how many. */
  readonly name: string
}

/** Named by the keys of its counts. */
export const laterSlot = (
  kind: LaterSlot['kind'],
  request: LimitRequest,
  { keyOf }: Pick<CallParts, 'keyOf'>,
): LaterSlot => {
  const keys = request.limits.map((limit) => keyOf(limit, request.scope))
  return { kind, request, name: `${request.cost} ${keys.join()}` }
}

/** As many as a busy gateway asks for in a second; what was refused and given back takes no place. */
const slotsMax = 1_024
/** Of one call. */
const togetherMax = 32
const retryMs = 100

/**
 * What gateways did with slots while Redis was not asked. A gateway gives back what was refused too, so a refusal and
 * its give-back are both told to Redis, or neither is.
 */
export class LaterSlots {
  readonly #send: (slot: LaterSlot) => Promise<boolean>
  readonly #onceAvailable: (run: () => void) => void
  #slots: LaterSlot[] = []
  #timer: NodeJS.Timeout | undefined

  /** @param send resolves to whether Redis was asked; one that it was not is added again. */
  constructor(send: (slot: LaterSlot) => Promise<boolean>, onceAvailable: (run: () => void) => void) {
    this.#send = send
    this.#onceAvailable = onceAvailable
  }

  get size(): number {
    return this.#slots.length
  }

  /** Whether it gives back what waits to be counted as refused: then neither is told. */
  cancels(slot: LaterSlot): boolean {
    const at = this.#slots.findLastIndex(({ kind, name }) => kind === 'renew' && name === slot.name)
    if (slot.kind !== 'refund' || at < 0) return false
    this.#slots.splice(at, 1)
    return true
  }

  add(slot: LaterSlot): void {
    if (this.#slots.length < slotsMax) this.#slots.push(slot)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#onceAvailable(() => void this.#sendAll())
    }, retryMs).unref()
  }

  clear(): void {
    this.#slots = []
    clearTimeout(this.#timer)
  }

  /** Those that are not sent wait for the next time. */
  async #sendAll(): Promise<void> {
    for (let isSent = true; isSent && this.#slots.length > 0; ) {
      const sent = await Promise.all(this.#slots.splice(0, togetherMax).map(this.#send))
      isSent = sent.includes(true)
    }
  }
}
