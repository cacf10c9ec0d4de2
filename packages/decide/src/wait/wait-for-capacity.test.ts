import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { expect, test, vi } from 'vitest'
import { DelayQueues } from './delay-queues.ts'
import { expectCapacity } from './wait-for-capacity.ts'

test('Members wait in one queue for a limit of the team above them, and each in its own for its own', () => {
  const queues = new DelayQueues()
  vi.spyOn(queues, 'busyKeys', 'get').mockReturnValue(1)
  const expected = vi.spyOn(queues, 'expect')
  const limits = [buildLimit(), buildLimit({ name: 'pool', level: 1 })]
  for (const [subject, team] of [
    ['dana', 'red'],
    ['erin', 'red'],
    ['finn', 'blue'],
  ] as const) {
    const scope = buildScope({ subject, above: [{ id: team, timeZone: 'UTC', anchor: 1 }] })
    expectCapacity(queues, buildLimitRequest({ limits, scope }))
  }
  const [dana, ofDana, erin, ofErin, finn, ofFinn] = expected.mock.calls.map(([key]) => key)
  expect(new Set([dana, erin, finn]).size).toBe(3)
  expect([ofErin, ofFinn === ofDana]).toEqual([ofDana, false])
})
