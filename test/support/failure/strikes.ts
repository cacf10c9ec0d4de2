import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { CrashStep } from './crash-steps.ts'
import type { Scene } from './scenario.ts'
import type { Stack } from './stack.ts'

/**
 * A step of an order of effects is passed within this time under load, by the slowest of them: a rare path waits for
 * its occasion.
 */
const crashDeadlineMs = 60_000
/** Rare enough for metering, which stops where too large a share of the records cannot be read. */
const occasionEveryMs = 1_000

/** Kills a part so often, at random moments, each time after it is back. */
export async function killAtRandom({ stack, load, random }: Scene, name: string, times: number): Promise<void> {
  for (let kill = 0; kill < times; kill += 1) {
    await load.forMs(random.integer(200, 3_000))
    const before = stack.pid(name)
    stack.signal(name, 'SIGKILL')
    await stack.backAfter(name, before)
  }
}

/**
 * Has a part end at a step: the first time that it comes there after a start, and after the next start the `nth` time.
 * Waits until it did both and is back.
 */
export async function crashTwiceAt({ stack }: Scene, step: CrashStep, nth: number): Promise<void> {
  const { part, at, occasion, behind } = step
  const deaths = () => stack.said.filter((line) => line.includes(` ${part} ended (SIGKILL)`)).length
  const places = [...(behind === undefined ? [] : [`${behind}:1`]), `${at}:1`, `${at}:${nth}`]
  // The first death is ours, the others are the step's.
  const wanted = deaths() + 1 + places.length
  stack.killInto(
    part,
    places.map((place) => ({ WEIR_CRASH_AT: place })),
  )
  let occasionMs = Number.NEGATIVE_INFINITY
  const hasCrashed = async () => {
    if (deaths() >= wanted) return true
    if (performance.now() - occasionMs >= occasionEveryMs) {
      await occasion?.(stack)
      occasionMs = performance.now()
    }
    return false
  }
  const crashed = await waitUntil(hasCrashed, { deadlineMs: crashDeadlineMs * (1 + nth), everyMs: 200 })
  if (crashed !== true) throw new Error(`${part} never came to ${at} once and then ${nth} times`)
  await stack.backAfter(part, undefined)
}

/** Stops a part for this time, and lets it continue as if nothing had happened. */
export async function freeze({ stack, load }: Scene, name: string, ms: number): Promise<void> {
  stack.signal(name, 'SIGSTOP')
  await load.forMs(ms)
  stack.signal(name, 'SIGCONT')
}

/** Keeps a part down for this time. */
export async function keepDown({ stack, load }: Scene, name: string, ms: number): Promise<void> {
  await stack.hold(name)
  await load.forMs(ms)
  await stack.release(name)
}

/** A service's log so far. */
export const logOf = (stack: Stack, name: string): string =>
  readFileSync(join(stack.dir, 'logs', `${name}.log`), 'utf8')
