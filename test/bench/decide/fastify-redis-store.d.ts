/** What libraries.ts uses of the store inside @fastify/rate-limit, which has no types. */
declare module '@fastify/rate-limit/store/RedisStore.js' {
  import type { Redis } from 'ioredis'

  export default class RedisStore {
    constructor(continueExceeding: boolean, exponentialBackoff: boolean, redis: Redis, prefix: string)
    incr(
      key: string,
      done: (error: Error | null, result: { readonly current: number; readonly ttl: number } | null) => void,
      windowMs: number,
      max: number,
    ): void
  }
}
