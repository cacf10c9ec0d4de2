import { afterAll, beforeAll, expect, it } from 'vitest'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ moreMetering: 2 })
})
afterAll(() => stack?.close())

/** A member leaves or comes about every two seconds, by SIGTERM and by SIGKILL in turn. */
const changes = 8

it('three metering processes whose group changes every few seconds count every answered decision once', async () => {
  const { row } = await playScenario(stack, {
    fault: `the group of 3 metering processes changes every few seconds, ${changes} times`,
    perSecond: 500,
    async strike({ load, random }) {
      for (let change = 0; change < changes; change += 1) {
        await load.forMs(random.integer(1_000, 3_000))
        const name = random.pick(['metering', 'metering-2', 'metering-3'])
        const before = stack.pid(name)
        // A stop by SIGTERM leaves the group in order; the supervisor starts the process again all the same.
        stack.signal(name, change % 2 === 0 ? 'SIGTERM' : 'SIGKILL')
        await stack.backAfter(name, before)
      }
    },
  })
  expect(row).toEqual(exactly(row))
})
