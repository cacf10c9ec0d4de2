import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'

/** A reply of the shape that the library's scripts have; which numbers they are only the library knows. */
const isReply = <Data>(reply: unknown): reply is Data => Array.isArray(reply)

/** Upstash's servers know this flag; a plain Redis refuses a script that names it. */
const shebang = /^#!lua flags=allow-key-locking\n/

/** As much of @upstash/redis as @upstash/ratelimit uses, over a plain connection instead of HTTP. */
export class UpstashClient {
  readonly #redis: Redis
  /** By the hash that the library calls a script by, the one it has without its first line. */
  readonly #hashes = new Map<string, string>()

  constructor(redis: Redis) {
    this.#redis = redis
  }

  async evalsha<Args extends unknown[], Data = unknown>(hash: string, keys: string[], args: Args): Promise<Data> {
    const known = this.#hashes.get(hash)
    if (known === undefined) throw new Error('NOSCRIPT')
    const reply = await this.#redis.evalsha(known, keys.length, ...keys, ...args.map(String))
    if (isReply<Data>(reply)) return reply
    throw new Error(`a script of @upstash/ratelimit replied with ${typeof reply}`)
  }

  /** The library calls it when `evalsha` said NOSCRIPT; its types leave it out. */
  async eval<Args extends unknown[], Data = unknown>(script: string, keys: string[], args: Args): Promise<Data> {
    const hash = createHash('sha1').update(script).digest('hex')
    this.#hashes.set(hash, String(await this.#redis.script('LOAD', script.replace(shebang, ''))))
    return await this.evalsha(hash, keys, args)
  }

  /** For limits that are changed while running, which are off. */
  async get(): Promise<never> {
    throw new Error('not expected to be called')
  }

  async set(): Promise<never> {
    throw new Error('not expected to be called')
  }
}
