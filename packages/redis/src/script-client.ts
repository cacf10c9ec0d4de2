import type { ScriptCall } from '@weir/core/limits/script-codec.ts'
import type { Redis } from 'ioredis'
import { CircuitBreaker } from './circuit-breaker.ts'
import { readScriptError } from './script-error.ts'
import { readScript } from './scripts.ts'

/** Where calls of decide.lua go. */
export interface CallTarget {
  /** No call is to be sent; see circuit-breaker.ts. */
  readonly isDown: boolean
  /** Sends a call, and never sends it again once it may have been run, nor after it was given up. */
  send(call: ScriptCall, isTimedOut: () => boolean): Promise<unknown>
  /** A call was given up at its deadline. */
  onTimeout(): void
  /** A call that had been given up was answered. */
  onLateReply(): void
  /** Runs it once: when the target is available, or when it is certain that it never will be again. */
  onceAvailable(run: () => void): void
}

/** One Redis server, which runs decide.lua. */
export class ScriptClient implements CallTarget {
  readonly redis: Redis
  readonly circuit: CircuitBreaker
  #script = readScript('decide')

  constructor(redis: Redis, deadlineMs: number) {
    this.redis = redis
    this.circuit = new CircuitBreaker({
      deadlineMs,
      isOpen: redis.status !== 'ready',
      probe: () => (redis.status === 'ready' ? redis.ping() : undefined),
    })
    redis.on('ready', this.#prepare)
    redis.on('close', this.#lost)
    redis.on('end', this.#ended)
    if (redis.status === 'ready') void this.#prepare()
  }

  /** This server, as the only one that decides. */
  get masters(): readonly ScriptClient[] {
    return [this]
  }

  /** How often its circuit breaker opened. */
  get opened(): number {
    return this.circuit.opened
  }

  get isDown(): boolean {
    return this.circuit.isOpen
  }

  /** With `asking`, for a slot that is on its way to this server: a call without it would be redirected. */
  async send({ keys, argv }: ScriptCall, isTimedOut: () => boolean, asking = false): Promise<unknown> {
    const { sha1, source } = this.#script
    if (asking) this.#ask()
    try {
      const reply = await this.redis.callBuffer('evalsha', sha1, keys.length, ...keys, ...argv)
      this.circuit.countAnswer()
      return reply
    } catch (error) {
      if (isTimedOut() || readScriptError(error).code !== 'NOSCRIPT') throw error
      if (asking) this.#ask()
      return await this.redis.callBuffer('eval', source, keys.length, ...keys, ...argv)
    }
  }

  /** Runs the script for no request, which it refuses with DECIDEARGS; Redis has the script afterwards. */
  callNothing(): Promise<unknown> {
    return this.send({ keys: [], argv: ['', '[]', '[]'] }, () => false)
  }

  onTimeout(): void {
    this.circuit.countTimeout()
  }

  onLateReply(): void {
    this.circuit.probe()
  }

  onceAvailable(run: () => void): void {
    this.circuit.onceClosed(run)
  }

  /** Probes no more. The connection stays. */
  close(): void {
    this.redis.off('ready', this.#prepare)
    this.redis.off('close', this.#lost)
    this.redis.off('end', this.#ended)
    this.circuit.stop()
  }

  /** Holds for the next command of the connection, and fails only together with it. */
  #ask(): void {
    this.redis.asking().catch(() => undefined)
  }

  readonly #lost = (): void => this.circuit.open()
  readonly #ended = (): void => this.close()

  /** After every connect: loads the script that fits the server's version, so that no request waits for that. */
  readonly #prepare = async (): Promise<void> => {
    this.circuit.probe()
    try {
      const info = await this.redis.info('server')
      this.#script = readScript('decide', Number(/^redis_version:(\d+)/m.exec(info)?.[1] ?? 6))
    } catch {
      // The connection ended, and prepares again; or INFO is not allowed: the script for 6 runs everywhere.
    }
    await this.callNothing().catch(() => undefined)
  }
}
