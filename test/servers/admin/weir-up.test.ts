import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { afterAll, expect, test } from 'vitest'
import { type RunningWeir, runWeir, weirUp } from '../../support/weir-up.ts'

const started: RunningWeir[] = []
afterAll(async () => {
  for (const one of started.toReversed()) await one.close()
})

async function start(...args: string[]): Promise<RunningWeir> {
  const weir = await weirUp(args)
  started.push(weir)
  return weir
}

function asker({ line }: RunningWeir) {
  return async (method: string, path: string, body?: object) => {
    const response = await fetch(`${line.console}${path}`, {
      method,
      headers: { authorization: `Bearer ${line.adminToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return JSON.parse((await response.text()) || 'null')
  }
}

const limit = (size: number) => ({ algorithm: 'fixed_window', size, window: '1m' })

test('weir up puts its policy in force; edits by the admin API survive a restart, and an edited file is taken over', async () => {
  const first = await start()
  const data = ['--data', first.dir]
  const shipped = join(projectRoot, 'weir.yaml')
  const hello = async ({ line }: RunningWeir) => {
    const answer = await fetch(`${line.ingress}/hello`, { headers: { 'x-api-key': line.demoKey ?? '' } })
    await answer.body?.cancel()
    return answer.status
  }
  expect(await hello(first)).toBe(200)
  expect(await runWeir(['diff', '--policy', shipped, ...data])).toMatchObject({ code: 0, stdout: '' })
  await asker(first)('PUT', '/v1/limits/minute', limit(77))
  await first.end('SIGTERM')

  const second = await start(...data)
  expect(second.said()).toContain('edits made through the admin API are kept')
  expect(await asker(second)('GET', '/v1/limits/minute')).toEqual(limit(77))
  // Its ports are others now, and the policy in force knows.
  expect(second.line.upstream).not.toBe(first.line.upstream)
  expect(await hello(second)).toBe(200)

  const file = join(first.dir, 'edited.yaml')
  await writeFile(file, (await readFile(shipped, 'utf8')).replace('size: 3000', 'size: 3003'))
  expect((await runWeir(['apply', '--policy', file, ...data])).stdout.split('\n').filter(Boolean).toSorted()).toEqual([
    '~ limit minute  size: 77 → 100',
    '~ limit starter-minute  size: 3000 → 3003',
  ])
  expect(await hello(second)).toBe(200)
  await second.end('SIGTERM')

  await writeFile(file, (await readFile(file, 'utf8')).replace('size: 3003', 'size: 3004'))
  const third = await start(...data, '--policy', file)
  expect(await asker(third)('GET', '/v1/limits/starter-minute')).toEqual(limit(3004))
}, 400_000)
