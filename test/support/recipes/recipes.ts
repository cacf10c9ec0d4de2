import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

/** Rate limiters as their public descriptions have them, each with the fault that test/lua/recipes.test.ts shows. */

/** One of the scripts beside this file. Resolves to whether it admitted. */
export async function runRecipe(
  redis: Redis,
  name: 'counter-charged-first' | 'counter-compared-first' | 'log-of-times' | 'log-added-first',
  key: string,
  ...argv: readonly (string | number)[]
): Promise<boolean> {
  const source = readFileSync(new URL(`${name}.lua`, import.meta.url), 'utf8')
  return (await redis.eval(source, 1, key, ...argv)) === 1
}

/** Every step is a command of its own; the caller may stop after any, as a process does that dies. */
export async function* incrThenExpire(redis: Redis, key: string, windowMs: number): AsyncGenerator<number> {
  const count = await redis.incr(key)
  yield count
  if (count === 1) await redis.pexpire(key, windowMs)
}

/** The same steps for a counter that is read, compared, and set to one more. The last step is whether it admitted. */
export async function* getThenSet(redis: Redis, key: string, size: number, windowMs: number): AsyncGenerator<boolean> {
  const count = Number((await redis.get(key)) ?? 0)
  yield count < size
  if (count >= size) return
  await redis.set(key, count + 1, 'PX', windowMs)
}
