import { isDeepStrictEqual } from 'node:util'
import type { LimitState } from '@weir/core/limits/decision.ts'
import { settleMsMax } from '@weir/core/limits/limit-store.ts'
import type { SettlementLimit } from '@weir/core/limits/script-codec.ts'
import { phases } from '@weir/core/limits/script-protocol.ts'
import type { RenewResult, Settlement, SettlementResult } from '@weir/core/limits/settlement.ts'
import { nanosPerRequestMax } from '@weir/core/prices/rate-card.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from './cluster-connection.ts'
import { ancestorInKey, markersKey, settlementKey } from './keys.ts'
import { markersMaxDefault } from './redis-limit-store.ts'
import { type Correction, SettlementCalls } from './settlement-calls.ts'
import {
  changeOf,
  type Marker,
  parseMarker,
  recordedMarker,
  renewedMarker,
  type SettledBy,
  settledHead,
  settledUnits,
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
  /** As of the store: a renewed marker is counted again. */
  readonly markersMax?: number
  /** A test's time for the script, in milliseconds; undefined for Redis's clock. */
  readonly now?: () => number | undefined
}

const answerMsDefault = 1_000
const graceMsDefault = 60_000
/** A repeat soon after is answered, also when it was settled at the last moment. */
const repeatedMs = 900_000
/** Somebody else was quicker: a few times in a row at most. */
const attemptsMax = 5

/**
 * A Redis that fails over may have forgotten what it answered in this time, so that is settled again. No process
 * settles more decisions meanwhile.
 */
const [forgottenMs, recentMax] = [10_000, 20_000]

/** A decision that this process settled a moment ago. */
interface Recent {
  readonly settlement: Settlement
  readonly settledMs: number
  /** Nobody waits for its record any more. */
  isRecorded: boolean
}

/** Why a decision is not settled, although it could be. */
type Refused = Extract<SettlementResult, { readonly kind: 'forbidden' | 'too-much' }>

/** Settles decisions that were made with a reservation: each once, however often it is asked. */
export class RedisSettlements {
  readonly #options: Required<SettlementsOptions>
  readonly #calls: SettlementCalls
  /** By the key of the marker, the oldest first. */
  readonly #recent = new Map<string, Recent>()
  /** Markers that this process settled and whose records it writes: they need not be read again. */
  readonly #pending = new Map<string, Marker>()
  /** How often the connection came back, and after how many of these all was settled again. */
  readonly #returns = { seen: 0, done: 0, isRunning: false }

  constructor(options: SettlementsOptions) {
    this.#options = {
      graceMs: graceMsDefault,
      answerMs: answerMsDefault,
      markersMax: markersMaxDefault,
      now: () => undefined,
      ...options,
    }
    const { redis } = options
    this.#calls = new SettlementCalls(redis, this.#options.now)
    redis.on('ready', () => {
      this.#returns.seen += 1
      void this.#settleAgain()
    })
  }

  async settle(settlement: Settlement): Promise<SettlementResult> {
    const key = settlementKey(settlement, settlement.id)
    const unavailable = { kind: 'unavailable' } as const
    const settled = this.#settle(key, settlement).catch(() => unavailable)
    const result = await withTimeout(settled, this.#options.answerMs, unavailable)
    if (result.kind === 'settled') this.#remember(key, settlement, !result.isRecordPending)
    return result
  }

  #remember(key: string, settlement: Settlement, isRecorded: boolean): void {
    const settledMs = performance.now()
    for (const [old, { settledMs: oldMs }] of this.#recent) {
      if (settledMs - oldMs <= forgottenMs && this.#recent.size < recentMax) break
      this.#recent.delete(old)
      this.#pending.delete(old)
    }
    this.#recent.delete(key)
    this.#recent.set(key, { settlement, settledMs, isRecorded })
  }

  /**
   * After a reconnect: what Redis has forgotten of the last settlements is done again, and nothing twice. Those whose
   * record is still to be written are settled again once it is confirmed.
   */
  async #settleAgain(): Promise<void> {
    const returns = this.#returns
    if (returns.isRunning) return
    returns.isRunning = true
    while (returns.done < returns.seen) {
      returns.done = returns.seen
      for (const [key, { settlement, isRecorded }] of [...this.#recent]) {
        if (!isRecorded) continue
        await this.#settle(key, settlement)
          .then(() => this.#confirm(key))
          .catch(() => undefined)
      }
    }
    returns.isRunning = false
  }

  /**
   * Tells Redis that the record of a settled decision is safe. False when Redis did not answer: the record stays
   * pending until a later call, and another process may write it again.
   */
  async confirmRecorded(settlement: Pick<Settlement, 'subject' | 'root' | 'id'>): Promise<boolean> {
    const key = settlementKey(settlement, settlement.id)
    const isConfirmed = await withTimeout(
      this.#confirm(key).catch(() => false),
      this.#options.answerMs,
      false,
    )
    const recent = this.#recent.get(key)
    if (isConfirmed && recent !== undefined) recent.isRecorded = true
    return isConfirmed
  }

  /** Keeps a decision that is not settled open for as long again, and its slots taken: a day from it at most. */
  async renew(settlement: Settlement): Promise<RenewResult> {
    const renewed = this.#renew(settlement).catch(() => ({ kind: 'unavailable' }) as const)
    return await withTimeout(renewed, this.#options.answerMs, { kind: 'unavailable' })
  }

  async #renew(settlement: Settlement): Promise<RenewResult> {
    const key = settlementKey(settlement, settlement.id)
    const home = await this.#renewOne(key, settlement, markersKey(settlement))
    if (!('text' in home)) return home
    const nowUs = home.text.renewed?.us ?? home.atUs
    for (const siblingKey of home.text.beside ?? []) await this.#renewOne(siblingKey, { ...settlement, isOwn: false })
    return { kind: 'renewed', openMs: Math.ceil(home.untilMs - nowUs / 1_000) }
  }

  /** @param tally where the marker is counted, as it lives longer now */
  async #renewOne(
    key: string,
    settlement: Settlement,
    tally?: string,
  ): Promise<Marker | Exclude<RenewResult, { kind: 'renewed' }>> {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const marker = await this.#read(key)
      if (marker?.phase !== phases.OPEN) return { kind: 'unknown' }
      if (whyNot(marker, { ...settlement, cost: 0 })?.kind === 'forbidden') return { kind: 'forbidden' }
      const lastMs = Math.floor(marker.atUs / 1_000) + settleMsMax
      const nowUs = await this.#calls.nowUs(key)
      const { untilMs, bytes, changes } = renewedMarker(marker, nowUs, lastMs)
      const leftMs = untilMs - Math.floor(nowUs / 1_000)
      const counted = tally === undefined ? [] : [tallyOf(tally, this.#options.markersMax, leftMs)]
      const limits = [...marker.limits, ...counted]
      const correction = { limits, changes: [...changes, 0], untilMs, repeatedMs: 0, atUs: marker.atUs }
      const renewed = await this.#replace(marker, bytes, key, correction)
      if (renewed === 'full') return { kind: 'too-many' }
      if (renewed !== undefined) return renewed
    }
    throw new Error(`${key} changed ${attemptsMax} times while it was renewed`)
  }

  async #confirm(key: string): Promise<boolean> {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const marker = this.#pending.get(key) ?? (await this.#read(key))
      this.#pending.delete(key)
      const forgotten = marker?.phase === phases.OPEN ? this.#recent.get(key) : undefined
      if (forgotten !== undefined) {
        await this.#settle(key, forgotten.settlement)
        continue
      }
      if (marker?.phase !== phases.RECORD_PENDING) return true // it waits for no record, or not any more
      if ((await this.#replace(marker, recordedMarker(marker), key)) !== undefined) return true
    }
    return false
  }

  async #settle(key: string, settlement: Settlement): Promise<SettlementResult> {
    const home = await this.#settleOne(key, settlement, (marker) => whyNot(marker, settlement))
    if (home === undefined) return { kind: 'unknown' }
    if ('kind' in home) return home
    const { settled, text } = home
    if (settled === undefined) return { kind: 'unavailable' }
    const { cost, units } = settled
    if (!isDeepStrictEqual({ cost, units }, settledTo(home, settlement))) return { kind: 'conflict', cost, units }
    const isRecordPending = home.phase === phases.RECORD_PENDING
    const isOwn = settled.owner === this.#options.owner
    if (isRecordPending && isOwn && this.#pending.size < recentMax) this.#pending.set(key, home)
    const waitMs = isRecordPending && !isOwn ? await this.#takeOver(key, home, settled) : 0
    if (waitMs > 0) return { kind: 'busy', retryAfterMs: waitMs }
    const limits = statesOf(settled, settlement)
    // Each slot has a marker of its own. A settled one is only read, so that a repeat completes what a death
    // interrupted.
    for (const siblingKey of text.beside ?? []) {
      const part = await this.#settleOne(siblingKey, settlement, () => undefined)
      if (part !== undefined && !('kind' in part)) limits.push(...statesOf(part.settled, settlement))
    }
    const { atUs: settledAtUs } = settled
    const found = { kind: 'settled', cost, chargedCost: home.cost, context: text.about, limits, settledAtUs } as const
    return { ...found, held: units && (text.units ?? {}), units, isRecordPending }
  }

  /** The marker once it is settled, by this call or before; undefined when there is none to settle. */
  async #settleOne(
    key: string,
    settlement: Settlement,
    whyNot: (marker: Marker) => Refused | undefined,
  ): Promise<Marker | Refused | undefined> {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const marker = await this.#read(key)
      if (marker === undefined || marker.phase === phases.VOID) return undefined
      const refused = whyNot(marker)
      if (refused !== undefined) return refused
      if (marker.phase !== phases.OPEN) return marker
      const { limits, untilMs, atUs } = marker
      const by = { ...settledTo(marker, settlement), owner: this.#options.owner, takenUs: 0 }
      const changes = limits.map((limit) => changeOf(limit, marker, by))
      const correction = { limits, changes, untilMs, repeatedMs, atUs }
      const settled = await this.#replace(marker, settledHead(marker, by), key, correction)
      if (settled !== undefined && settled !== 'full') return settled
    }
    throw new Error(`${key} changed ${attemptsMax} times while it was settled`)
  }

  /** Returns the milliseconds to wait before this process may write another's record; 0 once it may. */
  async #takeOver(key: string, marker: Marker, by: SettledBy & { atUs: number }): Promise<number> {
    const { cost, units, atUs, takenUs } = by
    const nowUs = await this.#calls.nowUs(key)
    const waitMs = Math.ceil(this.#options.graceMs - (nowUs - Math.max(atUs, takenUs)) / 1_000)
    if (waitMs > 0) return waitMs
    const taken = takenMarker(marker, { cost, units, owner: this.#options.owner, takenUs: nowUs })
    return (await this.#replace(marker, taken, key)) === undefined ? this.#options.graceMs : 0
  }

  async #read(key: string): Promise<Marker | undefined> {
    const bytes = await this.#calls.read(key)
    return bytes === null ? undefined : parseMarker(bytes)
  }

  /** Undefined when the marker is not what it was, and `full` when the tally is: nothing was done. */
  async #replace(from: Marker, to: Buffer, key: string, correction?: Correction): Promise<Marker | 'full' | undefined> {
    const reply = await this.#calls.replace({ key, before: from.bytes, after: to, correction })
    if (reply === null) return undefined
    return reply.toString('latin1') === 'FULL' ? 'full' : parseMarker(Buffer.concat([to, reply]))
  }
}

/** What settling left of limits, each with the ancestor that it counts. */
const statesOf = (settled: Marker['settled'], settlement: Settlement): LimitState[] =>
  (settled?.limits ?? []).map(({ key, ...state }) => {
    const at = ancestorInKey(key, settlement)
    return at === undefined ? state : { ...state, at }
  })

/** The tally as one of the counts that settle.lua changes. */
const tallyOf = (key: string, most: number, ttlMs: number): SettlementLimit => [
  '',
  0,
  key,
  `["tally",${most},${ttlMs}]`,
]

/** What a decision is settled to: what is not said stays as it was charged, or held. */
function settledTo(marker: Marker, { cost = marker.cost, units, isUnused }: Settlement) {
  if (isUnused !== true) return { cost, units: settledUnits(marker, units) }
  const held = Object.keys(marker.text.units ?? {})
  return {
    cost: 0,
    units: settledUnits(marker, held.length === 0 ? undefined : new Map(held.map((unit) => [unit, 0]))),
  }
}

/** A repeat is not too much, whatever it was settled to: it completes what was begun. */
function whyNot(marker: Marker, { cost = 0, units = new Map(), isOwn }: Settlement): Refused | undefined {
  if (isOwn === true && marker.text.isOwn !== true) return { kind: 'forbidden' }
  if (marker.phase !== phases.OPEN) return undefined
  const settleMax = isOwn === true ? marker.cost : settleMaxOf(marker)
  if (cost > settleMax) return { kind: 'too-much', settleMax }
  // Entry points bound what callers say; the most of all is an amount of money.
  const mostOf = (unit: string) => (isOwn === true ? (marker.text.units?.[unit] ?? 0) : nanosPerRequestMax)
  const unit = [...units].find(([name, quantity]) => quantity > mostOf(name))?.[0]
  return unit === undefined ? undefined : { kind: 'too-much', settleMax: mostOf(unit), unit }
}
