import type { LimitState } from '@weir/core/limits/decision.ts'
import type { Settlement, SettlementResult } from '@weir/core/limits/settlement.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from './cluster-connection.ts'
import { keySlot } from './key-slot.ts'
import { settlementKey } from './keys.ts'
import { readScriptError } from './script-error.ts'
import { readScript } from './scripts.ts'
import {
  chargedIn,
  type Marker,
  parseMarker,
  recordedMarker,
  settledHead,
  settleMaxOf,
  takenMarker,
} from './settlement-marker.ts'

export interface SettlementsOptions {
  readonly redis: Redis | ClusterConnection
  /** Names this process start. */
  readonly owner: string
  /** A process that owes a record for longer is taken for dead. Longer than any may be stopped between Redis's answer and its journal. */
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

interface Read {
  readonly bytes: Buffer
  readonly marker: Marker
}

/** Settles decisions that were decided with `reservation`; each once, however often it is asked. */
export class RedisSettlements {
  readonly #redis: Redis | ClusterConnection
  readonly #owner: string
  readonly #graceMs: number
  readonly #answerMs: number
  readonly #now: () => number | undefined
  readonly #script = readScript('settle')

  constructor(options: SettlementsOptions) {
    const { redis, owner, graceMs = graceMsDefault, answerMs = answerMsDefault, now = () => undefined } = options
    this.#answerMs = answerMs
    this.#redis = redis
    this.#owner = owner
    this.#graceMs = graceMs
    this.#now = now
  }

  async settle(settlement: Settlement): Promise<SettlementResult> {
    const key = settlementKey(settlement.subject, settlement.id)
    const unavailable = { kind: 'unavailable' } as const
    const settled = this.#settle(key, settlement).catch(() => unavailable)
    return await withTimeout(settled, this.#answerMs, unavailable)
  }

  /**
   * The record of a settled decision is safe. False when Redis did not answer: the record stays owed until Redis is told
   * again, and another process may write it again.
   */
  async recorded({ subject, id }: Pick<Settlement, 'subject' | 'id'>): Promise<boolean> {
    const key = settlementKey(subject, id)
    const isRecorded = this.#recorded(key).catch(() => false)
    return await withTimeout(isRecorded, this.#answerMs, false)
  }

  async #recorded(key: string): Promise<boolean> {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const read = await this.#read(key)
      if (read?.marker.phase !== 'owed') return true // nothing is owed, or nothing any more
      if ((await this.#replace(key, read.bytes, recordedMarker(read.bytes))) !== undefined) return true
    }
    return false
  }

  async #settle(key: string, settlement: Settlement): Promise<SettlementResult> {
    const { cost } = settlement
    const home = await this.#settleOne(key, cost, (marker) => whyNot(marker, settlement))
    if (home === undefined) return { kind: 'unknown' }
    if ('kind' in home) return home
    const { marker } = home
    const { settled } = marker
    if (settled === undefined) return { kind: 'unavailable' }
    if (settled.cost !== cost) return { kind: 'conflict', cost: settled.cost }
    const isOwed = marker.phase === 'owed'
    const waitMs = isOwed && settled.owner !== this.#owner ? await this.#takeOver(key, home) : 0
    if (waitMs > 0) return { kind: 'busy', retryAfterMs: waitMs }
    const parts = [marker]
    // Each by its own marker: what is there already is only read, so that a repeat completes what a death left half done.
    for (const beside of marker.text.beside ?? []) {
      const part = await this.#settleOne(beside, cost, () => undefined)
      if (part !== undefined && !('kind' in part)) parts.push(part.marker)
    }
    const limits = parts.flatMap(correctedLimits)
    const { cost: chargedCost, text } = marker
    return { kind: 'settled', cost, chargedCost, about: text.about, limits, settledAtUs: settled.atUs, isOwed }
  }

  /** The marker as it is once it has been settled, by this or before; undefined when there is none to settle. */
  async #settleOne(
    key: string,
    cost: number,
    whyNot: (marker: Marker) => Refused | undefined,
  ): Promise<Read | Refused | undefined> {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const read = await this.#read(key)
      if (read === undefined || read.marker.phase === 'void') return undefined
      const refused = whyNot(read.marker)
      if (refused !== undefined) return refused
      if (read.marker.phase !== 'open') return read
      const { bytes, marker } = read
      const limits = chargedIn(marker)
      const head = settledHead(bytes, marker, { cost, owner: this.#owner, takenUs: 0 })
      const numbers = [marker.untilMs, repeatedMs, cost - marker.cost, marker.atUs]
      const correction = `[${[...numbers, ...limits.map(([, , , definition]) => definition)].join(',')}]`
      const keys = limits.map(([, , count]) => count)
      const settled = await this.#replace(key, bytes, head, keys, correction)
      if (settled !== undefined) return settled
    }
    throw new Error(`${key} changed ${attemptsMax} times while it was settled`)
  }

  /** Milliseconds to wait before this process may take over what another owes; 0 when it has. */
  async #takeOver(key: string, { bytes, marker }: Read): Promise<number> {
    const { settled } = marker
    if (settled === undefined) return this.#graceMs
    const nowUs = await this.#nowUs(key)
    const sinceUs = Math.max(settled.atUs, settled.takenUs)
    const waitMs = Math.ceil(this.#graceMs - (nowUs - sinceUs) / 1_000)
    if (waitMs > 0) return waitMs
    const taken = takenMarker(bytes, marker, { cost: settled.cost, owner: this.#owner, takenUs: nowUs })
    return (await this.#replace(key, bytes, taken)) === undefined ? this.#graceMs : 0
  }

  async #nowUs(key: string): Promise<number> {
    const nowMs = this.#now()
    if (nowMs !== undefined) return nowMs * 1_000
    const [seconds, us] = await this.#on(key, (server) => server.time())
    return Number(seconds) * 1_000_000 + Number(us)
  }

  async #read(key: string): Promise<Read | undefined> {
    const bytes = await this.#on(key, (server) => server.getBuffer(key))
    return bytes === null ? undefined : readBytes(bytes)
  }

  /** Undefined when the marker is not what it was, and nothing was done. */
  async #replace(key: string, from: Buffer, to: Buffer, counts: readonly string[] = [], correction = '') {
    const nowMs = this.#now()
    const time = nowMs === undefined ? '' : String(Math.round(nowMs * 1_000))
    const keys = [key, ...counts]
    const { source } = this.#script
    const reply = await this.#on(key, (server) =>
      server.callBuffer('eval', source, keys.length, ...keys, time, from, to, correction),
    )
    if (reply === null) return undefined
    if (!Buffer.isBuffer(reply)) throw new Error(`settle.lua replied with ${typeof reply} instead of bytes`)
    return readBytes(reply)
  }

  /** Whatever is sent again is harmless: it changes nothing unless the marker still is what was read. */
  async #on<T>(key: string, ask: (server: Redis) => Promise<T>): Promise<T> {
    const connection = this.#redis
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
  return marker.phase === 'open' && cost > settleMax ? { kind: 'too-much', settleMax } : undefined
}

function readBytes(bytes: Buffer): Read | undefined {
  const marker = parseMarker(bytes)
  return marker === undefined ? undefined : { bytes, marker }
}

function correctedLimits(marker: Marker): readonly LimitState[] {
  return chargedIn(marker).flatMap(([name, size], at) => {
    const count = marker.settled?.counts[at]
    if (count?.changed !== true) return []
    const { used, remaining, resetMs } = count
    return [{ name, size, used, remaining, resetMs }]
  })
}
