import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { countAlerts } from '../support/failure/alerts.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { killAtRandom } from '../support/failure/strikes.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack?.close())

/** Of each part. */
const kills = 4

describe('kill -9 at random moments under load', () => {
  it.for([
    ['metering', 'alerting', 'console'],
    ['ingress', 'kafka'],
    ['clickhouse', 'redis'],
  ])(
    'of %s at once: every answered decision is counted once, in raw and in every rollup, and every alert is out once',
    async (names) => {
      const { row, load } = await playScenario(stack, {
        fault: `kill -9 of ${names.join(' and ')}, ${kills} times each`,
        perSecond: 500,
        strike: async (scene) => void (await Promise.all(names.map((name) => killAtRandom(scene, name, kills)))),
      })
      expect(row).toEqual(exactly(row))
      const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
      expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
    },
  )
})
