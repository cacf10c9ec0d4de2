import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack?.close())

/** Of each part. */
const kills = 4

describe('kill -9 at random moments under load', () => {
  it.for(['metering', 'alerting', 'clickhouse', 'ingress', 'redis', 'kafka'])(
    'of %s: every answered decision is counted once, in raw and in every rollup',
    async (name) => {
      const { row } = await playScenario(stack, {
        fault: `kill -9 of ${name}, ${kills} times`,
        perSecond: 2_000,
        async strike({ load, random }) {
          for (let kill = 0; kill < kills; kill += 1) {
            await load.forMs(random.integer(200, 3_000))
            const before = stack.pid(name)
            stack.signal(name, 'SIGKILL')
            await stack.backAfter(name, before)
          }
        },
      })
      expect(row).toEqual(exactly(row))
    },
  )
})
