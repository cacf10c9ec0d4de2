import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startConsoleOnKafka } from '../support/console-stack.ts'
import { folderForTest, forFile } from '../support/opened.ts'
import { runWeir } from '../support/weir-up.ts'

const map = { small: { litellm_provider: 'openai', input_cost_per_token: 2.5e-7, max_input_tokens: 400_000 } }
const { desk } = await forFile(startConsoleOnKafka({ policy: { version: 1 } }))

test('A card that is printed can be applied, and then has the prices of its file until that changes', async () => {
  const file = join(await folderForTest('rates'), 'map.json')
  await writeFile(file, JSON.stringify(map))
  const weir = (...args: readonly string[]) => runWeir(['rates', ...args], desk.environment)
  const printed = await weir('import', 'litellm', file, '--provider', 'openai', '--from', '2026-01-01T00:00:00Z')
  expect((await desk.ask('PUT /v1/policy', printed.stdout)).status).toBe(200)
  expect(await weir('diff', 'litellm', file)).toMatchObject({ code: 0, stdout: '' })
  await writeFile(file, JSON.stringify({ small: { ...map.small, input_cost_per_token: 2e-7 } }))
  const { code, stdout } = await weir('diff', 'litellm', file)
  expect([code, stdout.split('\n')[1]?.split(/ +/)]).toEqual([0, ['usd', 'small', 'input_tokens', '0.25', '0.2']])
  const mistyped = await weir('import', 'litellm', file, '--from', 'today')
  expect([mistyped.code, mistyped.stderr]).toEqual([2, expect.stringContaining('a time with a UTC offset')])
})
