import { afterAll, beforeAll, expect, it } from 'vitest'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ ingress: 2 })
})
afterAll(() => stack?.close())

const kills = 6

it('two ingress processes on one journal directory, killed in turn: none takes over what another still writes', async () => {
  const { row } = await playScenario(stack, {
    fault: `two ingress processes on one journal directory, killed in turn, ${kills} times`,
    perSecond: 500,
    async strike({ load, random }) {
      for (let kill = 0; kill < kills; kill += 1) {
        await load.forMs(random.integer(1_000, 4_000))
        const name = kill % 2 === 0 ? 'ingress' : 'ingress-2'
        const before = stack.pid(name)
        stack.signal(name, 'SIGKILL')
        await stack.backAfter(name, before)
      }
    },
  })
  expect(row).toEqual(exactly(row))
})
