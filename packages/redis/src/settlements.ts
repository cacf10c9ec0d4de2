import { phases } from '@weir/core/limits/script-protocol.ts'
import type { Settlement, SettlementResult } from '@weir/core/limits/settlement.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from './cluster-connection.ts'
import { keySlot } from './key-slot.ts'
import { settlementKey } from './keys.ts'
import { readScriptError } from './script-error.ts'
import { readScript, scriptTime } from './scripts.ts'
import {
  type Marker,
  parseMarker,
  recordedMarker,
  type SettledBy,
  settledHead,
  settleMaxOf,
  takenMarker,
} from './settlement-marker.ts'

interface SettlementsOptions {
  readonly redis: Redis | ClusterConnection
  /** Names this process start. */
  readonly owner: string
  /**
   * A process whose record is pending for longer is taken for dead. Longer than any may be stopped between Redis's
   * answer and its journal.
   */
  readonly graceMs?: number
  /** Settling may wait longer than a decision, but its caller waits too. */
  readonly answerMs?: number
  /** A test's time for the script, in milliseconds; undefined for Redis's clock. */
  readonly now?: () => number | undefined
}

const answerMsDefault = 1_000
const graceMsDefault = 60_000
/** A repeat soon after is answered, also when it was settled at the last moment. */
const repeatedMs = 900_000
/** Somebody else was quicker, or a slot has moved: a few times in a row at most. */
const attemptsMax = 5

/** Why a decision is not settled, although it could be. */
type Refused = Extract<SettlementResult, { readonly kind: 'forbidden' | 'too-much' }>

/** Settles decisions that were made with a reservation: each once, however often it is asked. */
export class RedisSettlements {
  readonly #options: Required<SettlementsOptions>
  readonly #script = readScript('settle')

  constructor(options: SettlementsOptions) {
    this.#options = { graceMs: graceMsDefault, answerMs: answerMsDefault, now: () => undefined, ...options }
  }

  async settle(settlement: Settlement): Promise<SettlementResult> {
    const key = settlementKey(settlement.subject, settlement.id)
    const unavailable = { kind: 'unavailable' } as const
    const settled = this.#settle(key, settlement).catch(() => unavailable)
    return await withTimeout(settled, this.#options.answerMs, unavailable)
  }

  /**
   * Tells Redis that the record of a settled decision is safe. False when Redis did not answer: the record stays
   * pending until a later call, and another process may write it again.
   */
  async confirmRecorded({ subject, id }: Pick<Settlement, 'subject' | 'id'>): Promise<boolean> {
    const isConfirmed = this.#confirm(settlementKey(subject, id)).catch(() => false)
    return await withTimeout(isConfirmed, this.#options.answerMs, false)
  }

  async #confirm(key: string): Promise<boolean> {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const marker = await this.#read(key)
      if (marker?.phase !== phases.RECORD_PENDING) return true // it waits for no record, or not any more
      if ((await this.#replace(marker, recordedMarker(marker), key)) !== undefined) return true
    }
    return false
  }

  async #settle(key: string, settlement: Settlement): Promise<SettlementResult> {
    const { cost } = settlement
    const home = await this.#settleOne(key, cost, (marker) => whyNot(marker, settlement))
    if (home === undefined) return { kind: 'unknown' }
    if ('kind' in home) return home
    const { settled, text } = home
    if (settled === undefined) return { kind: 'unavailable' }
    if (settled.cost !== cost) return { kind: 'conflict', cost: settled.cost }
    const isRecordPending = home.phase === phases.RECORD_PENDING
    const waitMs =
      isRecordPending && settled.owner !== this.#options.owner ? await this.#takeOver(key, home, settled) : 0
    if (waitMs > 0) return { kind: 'busy', retryAfterMs: waitMs }
    const limits = [...settled.limits]
    // Each slot has a marker of its own. A settled one is only read, so that a repeat completes what a death
    // interrupted.
    for (const siblingKey of text.beside ?? []) {
      const part = await this.#settleOne(siblingKey, cost, () => undefined)
      if (part !== undefined && !('kind' in part)) limits.push(...(part.settled?.limits ?? []))
    }
    const { atUs: settledAtUs } = settled
    return { kind: 'settled', cost, chargedCost: home.cost, context: text.about, limits, settledAtUs, isRecordPending }
  }

  /** The marker once it is settled, by this call or before; undefined when there is none to settle. */
  async #settleOne(
    key: string,
    cost: number,
    whyNot: (marker: Marker) => Refused | undefined,
  ): Promise<Marker | Refused | undefined> {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const marker = await this.#read(key)
      if (marker === undefined || marker.phase === phases.VOID) return undefined
      const refused = whyNot(marker)
      if (refused !== undefined) return refused
      if (marker.phase !== phases.OPEN) return marker
      const { limits } = marker
      const head = settledHead(marker, { cost, owner: this.#options.owner, takenUs: 0 })
      const units = limits.map(([, , , , kind]) => (kind === 2 ? -1 : cost - marker.cost))
      const numbers = [marker.untilMs, repeatedMs, `[${units.join()}]`, marker.atUs]
      const correction = `[${[...numbers, ...limits.map(([, , , definition]) => definition)].join()}]`
      const counts = limits.map(([, , count]) => count)
      const settled = await this.#replace(marker, head, key, counts, correction)
      if (settled !== undefined) return settled
    }
    throw new Error(`${key} changed ${attemptsMax} times while it was settled`)
  }

  /** Returns the milliseconds to wait before this process may write another's record; 0 once it may. */
  async #takeOver(key: string, marker: Marker, { cost, atUs, takenUs }: SettledBy & { atUs: number }): Promise<number> {
    const nowUs = await this.#nowUs(key)
    const waitMs = Math.ceil(this.#options.graceMs - (nowUs - Math.max(atUs, takenUs)) / 1_000)
    if (waitMs > 0) return waitMs
    const taken = takenMarker(marker, { cost, owner: this.#options.owner, takenUs: nowUs })
    return (await this.#replace(marker, taken, key)) === undefined ? this.#options.graceMs : 0
  }

  async #nowUs(key: string): Promise<number> {
    const nowMs = this.#options.now()
    if (nowMs !== undefined) return nowMs * 1_000
    const [seconds, us] = await this.#on(key, (server) => server.time())
    return Number(seconds) * 1_000_000 + Number(us)
  }

  async #read(key: string): Promise<Marker | undefined> {
    const bytes = await this.#on(key, (server) => server.getBuffer(key))
    return bytes === null ? undefined : parseMarker(bytes)
  }

  /** Undefined when the marker is not what it was, and nothing was done. */
  async #replace(
    from: Marker,
    to: Buffer,
    key: string,
    counts: readonly string[] = [],
    correction = '',
  ): Promise<Marker | undefined> {
    const keys = [key, ...counts]
    const { source } = this.#script
    const time = scriptTime(this.#options.now())
    const reply = await this.#on(key, (server) =>
      server.callBuffer('eval', source, keys.length, ...keys, time, from.bytes, to, correction),
    )
    if (reply === null) return undefined
    if (!Buffer.isBuffer(reply)) throw new Error(`settle.lua replied with ${typeof reply} instead of bytes`)
    return parseMarker(reply)
  }

  /** Sending again is harmless: it changes nothing unless the marker still is what was read. */
  async #on<T>(key: string, ask: (server: Redis) => Promise<T>): Promise<T> {
    const connection = this.#options.redis
    if (!('serverOf' in connection)) return await ask(connection)
    const slot = keySlot(key)
    let server = connection.serverOf(slot)
    for (let attempt = 1; ; attempt += 1) {
      if (server === undefined) throw new Error('no master of the Cluster is known to hold this key')
      try {
        return await ask(server)
      } catch (error) {
        const { code, address } = readScriptError(error)
        if (code !== 'MOVED' || attempt >= attemptsMax) throw error
        server = connection.moved(slot, address, server)
      }
    }
  }
}

/** A repeat is not too much, whatever it was settled to: it completes what was begun. */
function whyNot(marker: Marker, { cost, isOwn }: Settlement): Refused | undefined {
  if (isOwn === true && marker.text.isOwn !== true) return { kind: 'forbidden' }
  const settleMax = isOwn === true ? marker.cost : settleMaxOf(marker)
  return marker.phase === phases.OPEN && cost > settleMax ? { kind: 'too-much', settleMax } : undefined
}
