import { expect, test } from 'vitest'
import { openConsole, openWithPolicy } from '../testing/open-console.ts'

const json = { 'content-type': 'application/json' }

test.each([
  [400, `{"limits":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
  [400, `{"limits":${'{"a":'.repeat(40)}1${'}'.repeat(40)}}`],
  [413, JSON.stringify({ limits: ['x'.repeat(300_000)] })],
  [422, JSON.stringify({ limits: ['['.repeat(1_000), `\\"${'{'.repeat(1_000)}`] })],
])('A body that is nested too deep or too long is answered with %i, and never with 500', async (status, body) => {
  const { ask } = await openWithPolicy()
  expect((await ask('PUT /v1/plans/z', { body, headers: json })).statusCode).toBe(status)
})

test.each(['['.repeat(200_000), '- '.repeat(100_000), `${'{a: '.repeat(50_000)}`, `"${'\\x'.repeat(50_000)}"`])(
  'A file of nothing but brackets is refused with its problems',
  async (body) => {
    const { ask } = openConsole()
    const answer = await ask('PUT /v1/policy', { body })
    expect([answer.statusCode, answer.json().problems.length < 202]).toEqual([422, true])
  },
)

test('A body with thousands of wrong names is refused within a moment, however many names there are', async () => {
  const { ask } = openConsole()
  const limits = Array.from({ length: 10_000 }, (_, n) => `  m${n}: { algorithm: fixed_window, size: 5, window: 1m }`)
  await ask('PUT /v1/policy', { body: `version: 1\nlimits:\n${limits.join('\n')}\n` })
  const before = process.cpuUsage()
  const body = { limits: Array.from({ length: 16_000 }, (_, n) => `minu${n}`) }
  const answer = await ask('PUT /v1/plans/z', { body })
  expect([answer.statusCode, answer.json().problems.length]).toEqual([422, 201])
  // A quarter of a second of the processor; with a suggestion for each it is more than five.
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1_000).toBeLessThan(2_000)
})
