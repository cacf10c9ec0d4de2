import { setTimeout as delay } from 'node:timers/promises'
import type { ScriptCall } from '@weir/core/limits/script-codec.ts'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from './cluster-connection.ts'
import { type CallTarget, ScriptClient } from './script-client.ts'
import { readScriptError } from './script-error.ts'

/** Most attempts of a call before its deadline: a moved slot needs one MOVED, a moving one an ASK and TRYAGAINs. */
const attemptsMax = 64
/** Pause before a slot on the move, or a server that is only being connected to, is asked again. */
const pauseMs = 2

/** The servers of a Cluster, each with its own circuit breaker: a server that is down affects its own slots only. */
export class ClusterServers {
  readonly connection: ClusterConnection
  readonly #deadlineMs: number
  readonly #servers = new Map<Redis, ScriptClient>()
  #openedBefore = 0

  constructor(connection: ClusterConnection, deadlineMs: number) {
    this.connection = connection
    this.#deadlineMs = deadlineMs
  }

  /** The masters, as far as they are known. */
  get masters(): readonly ScriptClient[] {
    return this.connection.masters.map((redis) => this.of(redis))
  }

  /** How often breakers opened, those of servers that are no longer part of the Cluster included. */
  get opened(): number {
    return [...this.#servers.values()].reduce((sum, { circuit }) => sum + circuit.opened, this.#openedBefore)
  }

  of(redis: Redis): ScriptClient {
    const known = this.#servers.get(redis)
    if (known !== undefined) return known
    const server = new ScriptClient(redis, this.#deadlineMs)
    this.#servers.set(redis, server)
    redis.once('end', () => {
      this.#openedBefore += server.circuit.opened
      this.#servers.delete(redis)
    })
    return server
  }

  close(): void {
    for (const server of this.#servers.values()) server.close()
  }
}

/** The server that holds a slot. A call is forwarded only before its deadline, and only if no server ran it. */
export class SlotTarget implements CallTarget {
  readonly #servers: ClusterServers
  readonly #slot: number
  /** Where the last call went. */
  #last: ScriptClient | undefined
  /** That server has not answered. Otherwise the call waits to be forwarded, which is not that server's fault. */
  #isAsked = false

  constructor(servers: ClusterServers, slot: number) {
    this.#servers = servers
    this.#slot = slot
  }

  get isDown(): boolean {
    const server = this.#holder()
    const isDown = server === undefined || server.isDown
    if (isDown) this.#servers.connection.refresh() // another server may have been made master instead
    return isDown
  }

  async send(call: ScriptCall, isTimedOut: () => boolean): Promise<unknown> {
    const { connection } = this.#servers
    let server = this.#holder()
    let asking = false
    for (let attempt = 1; ; attempt += 1) {
      if (server === undefined) throw new Error("Stream isn't writeable: no master is known for the slot")
      this.#last = server
      this.#isAsked = true
      try {
        return await server.send(call, isTimedOut, asking)
      } catch (error) {
        this.#isAsked = false
        const { code, address } = readScriptError(error)
        if (isTimedOut() || attempt >= attemptsMax) throw error
        if (code === 'MOVED' || code === 'ASK') {
          asking = code === 'ASK'
          const next = asking ? connection.at(address) : connection.moved(this.#slot, address, server.redis)
          if (next === undefined) throw error
          server = this.#servers.of(next)
        } else if (code === 'TRYAGAIN' || (code === 'NOT_SENT' && attempt > 1)) await delay(pauseMs)
        else throw error
        if (isTimedOut()) throw error
      }
    }
  }

  onTimeout(): void {
    if (this.#isAsked) this.#last?.onTimeout()
  }

  onLateReply(): void {
    this.#last?.onLateReply()
  }

  onceAvailable(run: () => void): void {
    this.#last?.onceAvailable(run)
  }

  #holder(): ScriptClient | undefined {
    const redis = this.#servers.connection.serverOf(this.#slot)
    return redis && this.#servers.of(redis)
  }
}
