import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { hear } from '../../support/hear.ts'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { listenForTest } from '../../support/listen.ts'
import { forFile } from '../../support/opened.ts'

const callerProgram = join(import.meta.dirname, '../../support/client/caller.ts')
const names = ['a', 'b', 'c']
/** What the API of the test allows in any second. */
const aSecondMax = 10

/** The limits that the README tells people to write for such an API. */
async function limitsOfReadme(): Promise<object> {
  const readme = await readFile(join(import.meta.dirname, '../../../packages/client/README.md'), 'utf8')
  const [, block = ''] = /```yaml\n(.*?)```/s.exec(readme) ?? []
  return parse(block).limits
}

const weir = await forFile(
  startIngressStack({
    version: 1,
    plans: { api: { limits: ['outbound'] } },
    limits: await limitsOfReadme(),
    subjects: { even: { plan: 'api', keys: [{ sha256: sha256('even-key') }] } },
  }),
)

interface Arrival {
  readonly atMs: number
  readonly from: string
  readonly status: number
}

/** An API that allows ten calls in any second, and answers the eleventh with 429. */
async function openApi() {
  const arrivals: Arrival[] = []
  const api = createServer((request, response) => {
    const atMs = performance.now()
    const inASecond = arrivals.filter((one) => one.atMs > atMs - 1_000).length
    const status = inASecond < aSecondMax ? 200 : 429
    arrivals.push({ atMs, status, from: request.url?.split('/')[1] ?? '' })
    response.writeHead(status).end()
  })
  return { arrivals, url: `http://127.0.0.1:${await listenForTest(api)}` }
}

/** Starts a process per name, lets them begin together, and waits for what their calls came to. */
async function callFromEach(apiUrl: string, key: string, calls: number): Promise<(number | string)[]> {
  const running = names.map((name) => {
    const child = spawnBound([process.execPath, callerProgram, name, String(calls)], {
      stdio: 'pipe',
      env: { PATH: process.env.PATH, WEIR_URL: weir.ingress.api, WEIR_KEY: key, API_URL: apiUrl },
    })
    const seen = hear(child)
    onTestFinished(() => void child.kill('SIGKILL'))
    return { child, seen }
  })
  await waitUntil(() => running.every(({ seen }) => seen.stdout.startsWith('ready')), { deadlineMs: 60_000 })
  for (const { child } of running) child.stdin?.end()
  await withTimeout(Promise.all(running.map(({ seen }) => seen.ended)), 100_000, undefined)
  return running.flatMap(({ seen }) => {
    const [, line] = /^ready\n(\[.*\])\n$/.exec(seen.stdout) ?? []
    expect([line === undefined, line === undefined ? seen.stdout + seen.stderr : '']).toEqual([false, ''])
    return JSON.parse(line ?? '[]')
  })
}

/** The most calls that came in any second. */
function mostInASecond(arrivals: readonly Arrival[]): number {
  return Math.max(
    ...arrivals.map(({ atMs }) => arrivals.filter((one) => one.atMs >= atMs && one.atMs < atMs + 1_000).length),
  )
}

/** The shortest time in which eleven calls came. */
const elevenMs = (arrivals: readonly Arrival[]) =>
  Math.min(...arrivals.slice(aSecondMax).map(({ atMs }, at) => atMs - (arrivals[at]?.atMs ?? 0)))

/** How much the shares of the processes differ in the first so many calls. */
function unfairness(arrivals: readonly Arrival[], first: number): number {
  const counts = names.map((name) => arrivals.slice(0, first).filter(({ from }) => from === name).length)
  return (Math.max(...counts) - Math.min(...counts)) / first
}

test('three processes with forty calls each share ten a second: no second has an eleventh, all succeed, in turn', async () => {
  const { arrivals, url } = await openApi()
  const outcomes = await callFromEach(url, 'even-key', 40)
  const seconds = ((arrivals.at(-1)?.atMs ?? 0) - (arrivals[0]?.atMs ?? 0)) / 1_000
  const shares = [60, 90].map((first) => unfairness(arrivals, first))
  process.stdout.write(
    `120 calls in ${seconds.toFixed(1)} s, at most ${mostInASecond(arrivals)} in a second, eleven in ${elevenMs(arrivals).toFixed(0)} ms, shares apart by ${shares.map((one) => `${(100 * one).toFixed(1)}%`).join(', ')}\n`,
  )
  expect(outcomes.filter((one) => one !== 200)).toEqual([])
  expect(arrivals).toHaveLength(120)
  expect(mostInASecond(arrivals)).toBeLessThanOrEqual(aSecondMax)
  for (const share of shares) expect(share).toBeLessThanOrEqual(0.17)
})
