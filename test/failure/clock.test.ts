import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { expect, it } from 'vitest'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { startStack } from '../support/failure/stack.ts'
import { forFile } from '../support/opened.ts'

const stack = await forFile(startStack())

/** Forward, back beyond the truth, and home again. */
const stepsMs = [30_000, -30_000, 3_600_000, -3_600_000, 0]

const names = ['ingress', 'metering', 'alerting'] as const

it('a wall clock that is set while the services run, of each at a time of its own: every answered decision is counted once', async () => {
  const shift = join(projectRoot, 'test', 'support', 'failure', 'shift-clock.ts')
  const clockFile = (name: string) => join(stack.dir, `clock-${name}`)
  for (const name of names) {
    const before = stack.pid(name)
    stack.killInto(name, [{ NODE_OPTIONS: `--import=${shift}`, WEIR_TEST_CLOCK_FILE: clockFile(name) }])
    await stack.backAfter(name, before)
  }
  const { row } = await playScenario(stack, {
    fault: `the clocks of ${names.join(', ')} set by 30 s and by an hour, both ways, in turn`,
    perSecond: 500,
    sinceMs: 2 * 3_600_000,
    async strike({ load }) {
      for (const offsetMs of stepsMs) {
        for (const name of names) {
          writeFileSync(clockFile(name), String(offsetMs))
          await load.forMs(3_000)
        }
      }
    },
  })
  expect(row).toEqual(exactly(row))
})
