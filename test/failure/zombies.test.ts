import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { freeze } from '../support/failure/strikes.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ moreMetering: 1 })
})
afterAll(() => stack?.close())

/** Twice the session: the group has long given its partitions to the other member. */
const frozenMs = 12_000

describe('a process that is stopped for longer than its session and then goes on', () => {
  it.for([['metering', 'alerting'], ['ingress', 'clickhouse'], ['kafka'], ['redis']])(
    '%s: what it still holds changes nothing; every answered decision is counted once',
    async (names) => {
      const { row } = await playScenario(stack, {
        fault: `SIGSTOP of ${names.join(' and ')} for ${frozenMs / 1_000} s, then SIGCONT`,
        perSecond: 500,
        strike: async (scene) => void (await Promise.all(names.map((name) => freeze(scene, name, frozenMs)))),
      })
      expect(row).toEqual(exactly(row))
    },
  )
})
