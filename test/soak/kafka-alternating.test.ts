import { expect, it } from 'vitest'
import { disorderedSubjects } from '../support/failure/order.ts'
import { comparePhases, type Phase, watchPhase } from '../support/failure/phases.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { startStack } from '../support/failure/stack.ts'
import { forFile } from '../support/opened.ts'

const stack = await forFile(startStack())

/** Of each kind, in turn, so that a machine that is busy for a while is busy for both. */
const rounds = 4
const phaseMs = 10_000
const readers = ['metering', 'alerting'] as const

it('Kafka away costs a request nothing: CPU, median and 99th percentile stay, and all is delivered in order afterwards', async () => {
  const up: Phase[] = []
  const down: Phase[] = []
  const { row, ledger } = await playScenario(stack, {
    fault: `Kafka up and down in turn, ${rounds} times ${phaseMs / 1_000} s`,
    perSecond: 2_000,
    async strike({ load }) {
      // What reads from Kafka would have the processor while Kafka is up, and none while it is down: requests then come
      // in other groups, and that is all that would be measured.
      for (const reader of readers) await stack.hold(reader)
      for (let round = 0; round < rounds; round += 1) {
        up.push(await watchPhase(stack, load, phaseMs))
        await stack.hold('kafka')
        down.push(await watchPhase(stack, load, phaseMs))
        await stack.release('kafka')
      }
      for (const reader of readers) await stack.release(reader)
    },
  })
  const ratios = comparePhases(ledger, up, down)
  process.stdout.write(`  with Kafka down against up: ${JSON.stringify(ratios)}\n`)
  expect(row).toEqual(exactly(row))
  expect(await disorderedSubjects(stack, ledger)).toEqual([])
  expect(ratios.cpu).toBeLessThanOrEqual(1.1)
  expect(ratios.p50).toBeLessThanOrEqual(1.25)
  expect(ratios.p99).toBeLessThanOrEqual(2)
})
