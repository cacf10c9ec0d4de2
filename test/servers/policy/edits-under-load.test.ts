import { writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, test } from 'vitest'
import { readMetric } from '../../support/read-metric.ts'
import { startSteadyLoad } from '../../support/steady-load.ts'
import { type RunningWeir, weirUp } from '../../support/weir-up.ts'

const edits = 100
const requestsPerSecond = 2_000
/** No machine is so busy that Redis is taken for dead: what is decided without it is not in its count. */
const deadlineMs = 5_000
/** Far above what the load can use up: nothing is refused, so that whatever fails, fails because of an edit. */
const sizeAtStart = 1_000_000
const policyFile = join(tmpdir(), `weir-edits-${process.pid}.yaml`)
const limit = (size: number) => ({ algorithm: 'fixed_window', size, period: 'month', thresholds: [] })

let weir: RunningWeir | undefined
afterAll(() => weir?.close())

const quantile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

/** The size that an answer was decided by. */
const sizeOf = (headers: IncomingHttpHeaders) =>
  Number(/"count";q=(\d+)/.exec(String(headers['ratelimit-policy']))?.[1])

test('100 edits under 2,000 requests/s on three ingress processes: no request fails, each edit is in force everywhere within a second, no count begins again', async () => {
  const policy = { version: 1, plans: { free: { limits: ['count'] } }, limits: { count: limit(sizeAtStart) } }
  await writeFile(policyFile, JSON.stringify({ ...policy, subjects: { demo: { plan: 'free' } } }))
  weir = await weirUp(['--policy', policyFile, '--ingress', '3'], { WEIR_DECISION_DEADLINE_MS: String(deadlineMs) })
  const { line } = weir
  const admin = { authorization: `Bearer ${line.adminToken}`, 'content-type': 'application/json' }

  const answers: { readonly startedMs: number; readonly status: number; readonly size: number }[] = []
  const load = startSteadyLoad({
    url: `${line.ingress}/hello`,
    headers: { 'x-api-key': line.demoKey ?? '' },
    requestsPerSecond,
    connections: 96,
    onAnswer: ({ startedMs, status, headers }) => answers.push({ startedMs, status, size: sizeOf(headers) }),
  })
  const acknowledged: { readonly size: number; readonly ms: number }[] = []
  for (let edit = 1; edit <= edits; edit += 1) {
    const size = sizeAtStart + edit
    const answer = await fetch(`${line.console}/v1/limits/count`, {
      method: 'PUT',
      headers: admin,
      body: JSON.stringify(limit(size)),
    })
    expect([edit, answer.status]).toEqual([edit, 200])
    acknowledged.push({ size, ms: performance.now() })
    // The next edit comes when this one has been answered by, a quarter of a second's requests later.
    const seen = answers.length + requestsPerSecond / 4
    await waitUntil(() => answers.length >= seen && answers.at(-1)?.size === size, { deadlineMs: 5_000 })
  }
  await load.stop()

  expect(load.failures).toEqual([])
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  // How long after the acknowledgement the last request began that was still decided by an older size.
  const lagsMs = acknowledged.map(({ size, ms }) =>
    answers.reduce((lag, one) => (one.size < size ? Math.max(lag, one.startedMs - ms) : lag), 0),
  )
  const sorted = lagsMs.toSorted((a, b) => a - b)
  const [p50, p99, max] = [0.5, 0.99, 1].map((share) => quantile(sorted, share).toFixed(1))
  process.stdout.write(
    `${edits} edits under ${load.perSecond().toFixed(0)} requests/s: in force everywhere after p50 ${p50} ms, p99 ${p99} ms, max ${max} ms\n`,
  )
  expect(Math.max(...lagsMs)).toBeLessThan(1_000)

  const processes = Object.entries(line.ops).filter(([name]) => name.startsWith('ingress'))
  expect(processes).toHaveLength(3)
  for (const [, ops] of processes) expect(await readMetric(ops, 'weir_decisions_total')).toBeGreaterThan(edits)
  const look = await fetch(`${line.api}/v1/check`, {
    method: 'POST',
    headers: admin,
    body: '{"subject":"demo","peek":true}',
  })
  expect(await look.json()).toMatchObject({
    limits: [{ name: 'count', size: sizeAtStart + edits, used: answers.length }],
  })
}, 180_000)
