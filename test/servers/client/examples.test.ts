import { createServer } from 'node:http'
import { join } from 'node:path'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import { expect, onTestFinished, test } from 'vitest'
import { installClient } from '../../support/client/install-client.ts'
import { hear } from '../../support/hear.ts'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { listenForTest } from '../../support/listen.ts'
import { forFile } from '../../support/opened.ts'

const subject = (plan: string, key: string) => ({ plan, keys: [{ sha256: sha256(key) }] })
const policy = {
  version: 1,
  plans: { search: { limits: ['day'] }, web: { limits: ['per-user'] }, api: { limits: ['second'] } },
  limits: {
    day: { algorithm: 'fixed_window', size: 12, window: '7d' },
    'per-user': { algorithm: 'fixed_window', size: 2, window: '7d', by: ['subject', 'attribute:user'] },
    second: { algorithm: 'sliding_log', size: 3, window: '1300ms' },
  },
  subjects: {
    acme: subject('search', 'acme-key'),
    caller: subject('search', 'caller-key'),
    shop: { plan: 'web' },
    github: subject('api', 'github-key'),
  },
  tokens: { app: { sha256: sha256('app-token'), scopes: ['check'] } },
}

const weir = await forFile(startIngressStack(policy))
const client = await forFile(installClient())

/** Runs an example as it was packed. */
function runExample(file: string, environment: Readonly<Record<string, string>>) {
  const child = spawnBound([process.execPath, join(client.dir, file)], {
    cwd: client.dir,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, WEIR_URL: weir.ingress.api, PORT: '0', ...environment },
  })
  const seen = hear(child)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await seen.ended
  })
  return seen
}

/** What an example printed until it ended by itself. */
async function printed(file: string, environment: Readonly<Record<string, string>>): Promise<string[]> {
  const seen = runExample(file, environment)
  const code = await withTimeout(seen.ended, 60_000, 'still running')
  expect([code, seen.stderr]).toEqual([0, ''])
  return seen.stdout.trim().split('\n')
}

/** The port that an example says it listens on. */
async function listening(file: string, environment: Readonly<Record<string, string>>): Promise<string> {
  const seen = runExample(file, environment)
  const port = await waitUntil(() => /(\d+)\n/.exec(seen.stdout)?.[1], { deadlineMs: 60_000 })
  expect([port, seen.stderr]).toEqual([expect.any(String), ''])
  return `http://127.0.0.1:${port}`
}

test('check.mjs prints what is allowed and what is not', async () => {
  const [first, second, third] = await printed('check.mjs', { WEIR_KEY: 'acme-key' })
  expect([first, second, third]).toEqual([
    '1 allowed',
    '2 allowed',
    expect.stringMatching(/^3 day is used up, for \d+ s$/),
  ])
})

async function get(url: string, headers: Readonly<Record<string, string>>) {
  const answer = await fetch(url, { headers })
  const body = Object(await answer.json())
  return { status: answer.status, rateLimit: answer.headers.get('ratelimit'), body }
}

test('fastify.mjs holds the limits of the key that a request carries', async () => {
  const url = await listening('fastify.mjs', { WEIR_KEY: 'app-token' })
  const headers = { authorization: 'Bearer caller-key' }
  for (let left = 11; left >= 0; left -= 1) {
    expect(await get(`${url}/hello?left=${left}`, headers)).toMatchObject({
      status: 200,
      body: { hello: 'world', left },
    })
  }
  const refused = await get(`${url}/hello`, headers)
  expect(refused).toMatchObject({ status: 429, rateLimit: expect.stringMatching(/^"day";r=0;t=\d+$/) })
  expect(refused.body).toMatchObject({ status: 429, 'violated-policies': ['day'] })
  expect((await get(`${url}/hel%2Flo`, headers)).status).toBe(400)
  expect((await get(`${url}/hello`, {})).status).toBe(401)
  expect((await get(`${url}/hello`, { 'x-api-key': 'nobody' })).status).toBe(401)
})

test('express.mjs holds a limit of each user', async () => {
  const url = await listening('express.mjs', { WEIR_KEY: 'app-token' })
  const statuses: number[] = []
  for (const user of ['ann', 'ann', 'ann', 'bob']) statuses.push((await get(`${url}/hello`, { 'x-user': user })).status)
  expect(statuses).toEqual([200, 200, 429, 200])
})

test('limited-fetch.mjs calls no faster than the limit', async () => {
  const times: number[] = []
  const api = createServer((_, response) => {
    times.push(performance.now())
    response.end()
  })
  const port = await listenForTest(api)
  expect(await printed('limited-fetch.mjs', { WEIR_KEY: 'github-key', API_URL: `http://127.0.0.1:${port}` })).toEqual([
    '200 200 200 200 200 200',
  ])
  for (const [at, time] of times.slice(3).entries()) expect(time - (times[at] ?? 0)).toBeGreaterThan(1_000)
})
