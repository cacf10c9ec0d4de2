import { afterAll, beforeAll, expect, it } from 'vitest'
import { endThreads, openInspector } from '../support/failure/publisher-thread.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack?.close())

const ends = 5

it('a publisher thread that ends is followed by another, which goes on where it was; the ingress process stays', async () => {
  const port = await openInspector(stack)
  const pid = stack.pid('ingress')
  const { row } = await playScenario(stack, {
    fault: `the publisher thread ends, ${ends} times`,
    perSecond: 500,
    async strike({ load, random }) {
      for (let end = 0; end < ends; end += 1) {
        await load.forMs(random.integer(500, 4_000))
        expect(await endThreads(port)).toEqual([expect.stringContaining('publisher')])
      }
    },
  })
  expect(row).toEqual(exactly(row))
  expect(stack.pid('ingress')).toBe(pid)
})
