import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { projectRoot } from '../support/weir-up.ts'

let stack: Stack
/** One for each: hours of decisions are counted, and would take in those of the scenario before. */
beforeEach(async () => {
  stack = await startStack()
})
afterEach(() => stack?.close())

/** Forward, back beyond the truth, and home again. */
const stepsMs = [30_000, -30_000, 3_600_000, -3_600_000, 0]

describe('a wall clock that is set while a service runs', () => {
  it.for(['ingress', 'metering', 'alerting'])('of %s: every answered decision is counted once', async (name) => {
    const clockFile = join(stack.dir, `clock-${name}`)
    const shift = join(projectRoot, 'test', 'support', 'failure', 'shift-clock.ts')
    const before = stack.pid(name)
    stack.killInto(name, [{ NODE_OPTIONS: `--import=${shift}`, WEIR_TEST_CLOCK_FILE: clockFile }])
    await stack.backAfter(name, before)
    const { row } = await playScenario(stack, {
      fault: `the clock of ${name} set by 30 s and by an hour, both ways`,
      perSecond: 1_000,
      sinceMs: 2 * 3_600_000,
      async strike({ load }) {
        for (const offsetMs of stepsMs) {
          writeFileSync(clockFile, String(offsetMs))
          await load.forMs(4_000)
        }
      },
    })
    expect(row).toEqual(exactly(row))
  })
})
