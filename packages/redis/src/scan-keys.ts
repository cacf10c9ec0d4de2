import type { Redis } from 'ioredis'

/** Keys looked at per step: about a millisecond of Redis's time. */
const scanCount = 1_000

/** Gives the keys of a server that match a pattern, some at each step. A key may come twice. */
export async function* scanKeys(server: Redis, pattern: string): AsyncIterable<readonly string[]> {
  let cursor = '0'
  do {
    const [next, keys] = await server.scan(cursor, 'MATCH', pattern, 'COUNT', scanCount)
    yield keys
    cursor = next
  } while (cursor !== '0')
}
