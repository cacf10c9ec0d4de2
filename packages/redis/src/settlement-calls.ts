import { setImmediate } from 'node:timers/promises'
import type { SettlementLimit } from '@weir/core/limits/script-codec.ts'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from './cluster-connection.ts'
import { keySlot } from './key-slot.ts'
import { readScriptError } from './script-error.ts'
import { readScript, scriptTime } from './scripts.ts'

/** As settle.lua checks it. */
const asksPerCallMax = 32
/** What may wait for a call: 32 full calls. The caller of a later one has given up by then. */
const waitingMax = 1_024
/** A slot has moved: a few times in a row at most. */
const attemptsMax = 5

/** What settle.lua is to change of the counts that a marker names; lua/scripts/settle.lua has the units. */
export interface Correction {
  readonly limits: readonly SettlementLimit[]
  /** One for each limit. */
  readonly changes: readonly unknown[]
  readonly untilMs: number
  readonly repeatedMs: number
  readonly atUs: number
}

/** To replace a marker that still is what was read. */
export interface Replacement {
  readonly key: string
  readonly before: Buffer
  readonly after: Buffer
  /** Without one the marker alone is replaced, and keeps its expiry. */
  readonly correction?: Correction | undefined
}

type Reply = Buffer | null

interface Ask<T> {
  readonly asked: T
  readonly resolve: (reply: Reply) => void
  readonly reject: (error: unknown) => void
}

/** One call is in flight for each slot of a Cluster, or for the server; what arrives meanwhile is the next one. */
class CallQueue<T> {
  readonly #send: (slot: number, asked: readonly T[]) => Promise<readonly unknown[]>
  /** What waits, by the slot that has a call in flight. */
  readonly #waiting = new Map<number, Ask<T>[]>()

  constructor(send: (slot: number, asked: readonly T[]) => Promise<readonly unknown[]>) {
    this.#send = send
  }

  ask(slot: number, asked: T): Promise<Reply> {
    const waiting = this.#waiting.get(slot) ?? []
    if (waiting.length >= waitingMax) return Promise.reject(new Error('too much waits to be settled'))
    return new Promise((resolve, reject) => {
      waiting.push({ asked, resolve, reject })
      if (this.#waiting.has(slot)) return
      this.#waiting.set(slot, waiting)
      void this.#run(slot, waiting)
    })
  }

  async #run(slot: number, waiting: Ask<T>[]): Promise<void> {
    // What the replies of a call lead to is asked before the next one.
    while ((await setImmediate(waiting)).length > 0) {
      const asks = waiting.splice(0, asksPerCallMax)
      const asked = asks.map((ask) => ask.asked)
      const replies = await this.#send(slot, asked).catch((error: unknown) => asked.map(() => error))
      for (const [at, { resolve, reject }] of asks.entries()) {
        const reply = replies[at]
        if (reply === null || Buffer.isBuffer(reply)) resolve(reply)
        else reject(reply)
      }
    }
    this.#waiting.delete(slot)
  }
}

/** Reads and replaces the markers of decisions that are settled, many in a call. Asking again is harmless. */
export class SettlementCalls {
  readonly #redis: Redis | ClusterConnection
  readonly #now: () => number | undefined
  readonly #script = readScript('settle')
  readonly #reads = new CallQueue<string>((slot, keys) => this.#on(slot, (server) => server.mgetBuffer(...keys)))
  readonly #replacements = new CallQueue<Replacement>((slot, asked) => this.#on(slot, (at) => this.#send(at, asked)))

  constructor(redis: Redis | ClusterConnection, now: () => number | undefined) {
    this.#redis = redis
    this.#now = now
  }

  /** Null if there is none. */
  read(key: string): Promise<Reply> {
    return this.#reads.ask(this.#slotOf(key), key)
  }

  /** What settle.lua replies: null if there is another marker. */
  replace(asked: Replacement): Promise<Reply> {
    return this.#replacements.ask(this.#slotOf(asked.key), asked)
  }

  /** By Redis's clock where this key is. */
  async nowUs(key: string): Promise<number> {
    const nowMs = this.#now()
    if (nowMs !== undefined) return nowMs * 1_000
    const [seconds, us] = await this.#on(this.#slotOf(key), (server) => server.time())
    return Number(seconds) * 1_000_000 + Number(us)
  }

  /** A single server has one queue for all. */
  #slotOf(key: string): number {
    return 'serverOf' in this.#redis ? keySlot(key) : 0
  }

  async #send(server: Redis, asked: readonly Replacement[]): Promise<readonly unknown[]> {
    const { source, sha1 } = this.#script
    const { keys, argv } = encodeReplacements(asked)
    const given = [keys.length, ...keys, scriptTime(this.#now()), ...argv]
    const reply = await server.callBuffer('evalsha', sha1, ...given).catch((error: unknown) => {
      if (readScriptError(error).code !== 'NOSCRIPT') throw error
      return server.callBuffer('eval', source, ...given)
    })
    if (!Array.isArray(reply)) throw new Error(`settle.lua replied with ${typeof reply} instead of a list`)
    return reply
  }

  async #on<T>(slot: number, ask: (server: Redis) => Promise<T>): Promise<T> {
    const connection = this.#redis
    if (!('serverOf' in connection)) return await ask(connection)
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

/** One call of settle.lua, whose header is the only description of its arguments; the time is before these. */
export function encodeReplacements(asked: readonly Replacement[]) {
  const keys: string[] = []
  const definitions = new Map<string, number>()
  const markers: Buffer[] = []
  const texts = asked.map(({ key, before, after, correction }) => {
    const text = `[${keys.push(key)},${2 + markers.push(before, after)}`
    if (correction === undefined) return `${text}]`
    const { limits, changes, untilMs, repeatedMs, atUs } = correction
    const corrected = limits.map(([, , count, definition], at) => {
      keys.push(count)
      const known = definitions.get(definition) ?? definitions.size + 1
      definitions.set(definition, known)
      return `,${known},${JSON.stringify(changes[at])}`
    })
    return `${text},${untilMs},${repeatedMs},${atUs}${corrected.join('')}]`
  })
  return { keys, argv: [`[${[...definitions.keys()].join()}]`, `[${texts.join()}]`, ...markers] }
}
