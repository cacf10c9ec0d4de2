import { afterAll, beforeAll, expect, it } from 'vitest'
import { processCpuSeconds } from '../bench/process-cpu.ts'
import { isLarge } from '../support/failure/is-large.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'

const perSecond = 1_000
const measuredMs = 60_000

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack?.close())

/** Of every process by the name of its kind: `kafka-1` and `kafka-2` are both `kafka`. */
function cpuByPart(): Map<string, number> {
  const used = new Map<string, number>()
  for (const name of stack.names) {
    const kind = name.replace(/-\d+$/, '')
    used.set(kind, (used.get(kind) ?? 0) + processCpuSeconds(stack.pid(name) ?? 0))
  }
  return used
}

it(`what a decision costs each part at ${perSecond} a second, beside ${isLarge ? 'three brokers and a Cluster' : 'one of each server'}`, async () => {
  const cost: Record<string, number> = {}
  const { row } = await playScenario(stack, {
    fault: 'none: what a decision costs',
    perSecond,
    async strike({ load }) {
      const [before, answeredBefore] = [cpuByPart(), load.progress.answered]
      await load.forMs(measuredMs)
      const decisions = load.progress.answered - answeredBefore
      for (const [kind, seconds] of cpuByPart())
        cost[kind] = Math.round(((seconds - (before.get(kind) ?? 0)) * 1e6) / decisions)
    },
  })
  const { demo: _, ...parts } = cost
  const all = Object.values(parts).reduce((sum, one) => sum + one, 0)
  process.stdout.write(`  CPU of a decision in us: ${JSON.stringify({ all, ...parts })}\n`)
  expect(row).toEqual(exactly(row))
})
