import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, it } from 'vitest'
import { compareWhenThere, openCounter } from '../support/failure/count.ts'
import { packId } from '../support/failure/ledger.ts'
import { untilSettled } from '../support/failure/until-settled.ts'
import { forFile } from '../support/opened.ts'
import { kafkaOptions } from '../support/servers/kafka-topics.ts'
import { startSteadyLoad } from '../support/steady-load.ts'
import { until } from '../support/until.ts'
import { type RunningWeir, weirUp } from '../support/weir-up.ts'

const up = await forFile(weirUp())

/**
 * Until a killed part is back and everything that depends on it works again. Kafka takes longest: 3 s, then the group
 * joins.
 */
const recoveryDeadlineMs = 60_000

/** Requests of the tests themselves, beside any ledger. */
let asked = 0

const send = async ({ line }: RunningWeir): Promise<number> => {
  asked += 1
  try {
    const answer = await fetch(`${line.ingress}/hello`, { headers: { 'x-api-key': line.demoKey ?? '' } })
    await answer.arrayBuffer()
    return answer.headers.get('weir-decision') === null ? 0 : answer.status
  } catch {
    return 0
  }
}

const decisions = async ({ line }: RunningWeir): Promise<number> => {
  const client = connectClickhouse(line.clickhouse, 'smoke')
  try {
    const [row] = await readRows<{ n: number }>(client, 'SELECT toUInt32(sum(count)) AS n FROM weir.decisions')
    return row?.n ?? 0
  } catch {
    return -1
  } finally {
    await client.close()
  }
}

/** A request is answered and its decision reaches ClickHouse. */
const worksAgain = async (up: RunningWeir): Promise<boolean> => {
  const before = await decisions(up)
  if (before < 0 || (await send(up)) === 0) return false
  return (await waitUntil(async () => (await decisions(up)) > before, { deadlineMs: 3_000 })) === true
}

/** Requests all the while, and what each was answered: a ledger that no part of Weir has a hand in. */
function keepLedger({ line }: RunningWeir) {
  const answers = new Map<string, number>()
  const load = startSteadyLoad({
    url: `${line.ingress}/hello`,
    headers: { 'x-api-key': line.demoKey ?? '' },
    requestsPerSecond: 100,
    connections: 8,
    onAnswer({ headers }) {
      const id = headers['weir-decision']
      if (typeof id === 'string') answers.set(packId(id), (answers.get(packId(id)) ?? 0) + 1)
    },
  })
  return {
    answers,
    /** Requests that reached somebody and got no answer: their decisions may be recorded or not. */
    cutOff: () => load.failures.filter((failure) => !failure.includes('ECONNREFUSED')).length,
    stop: () => load.stop(),
  }
}

/** Every answered decision is in the raw table once, and in every rollup; nothing else is but what was cut off. */
async function expectExactCounts(
  { line, dir }: RunningWeir,
  answers: Map<string, number>,
  cutOff: number,
): Promise<void> {
  const counter = openCounter(line.clickhouse)
  try {
    await untilSettled({ kafka: kafkaOptions(line.kafka), dir })
    const found = await compareWhenThere(counter, answers, '2000-01-01')
    const expected = { missing: new Map(), beyond: 0, repeated: 0 }
    expect({ ...found, beyond: Math.max(0, found.beyond - cutOff) }).toEqual(expected)
    const raw = await counter.rawTotal()
    expect(await counter.rollupTotals()).toEqual({ usage_1m: raw, usage_15m: raw, usage_total_15m: raw })
    expect([await counter.rollupDifferences(), await counter.repeatedRows(), await counter.holes()]).toEqual([0, 0, 0])
  } finally {
    await counter.close()
  }
}

it('While a server is stopped, the ingress still answers, and the rest says what is missing', async () => {
  const pids = (await up.state()).pids
  process.kill(pids.clickhouse ?? 0, 'SIGSTOP')
  process.kill(pids.kafka ?? 0, 'SIGSTOP')
  expect(await send(up)).toBe(200)
  const readyz = await fetch(`${up.line.ops.metering}/readyz`)
  expect([readyz.status, await readyz.text()]).toEqual([503, expect.stringContaining('clickhouse: ')])
  const usage = await fetch(`${up.line.console}/v1/usage`, {
    headers: { authorization: `Bearer ${up.line.adminToken}` },
    signal: AbortSignal.timeout(30_000),
  })
  expect([usage.status, usage.headers.get('content-type')]).toEqual([503, 'application/problem+json'])
  process.kill(pids.clickhouse ?? 0, 'SIGCONT')
  process.kill(pids.kafka ?? 0, 'SIGCONT')
  await until(() => worksAgain(up), recoveryDeadlineMs)
})

it('kill -9 of each part in turn under load: it is started again, and every answered decision is counted once', async () => {
  expect(await worksAgain(up)).toBe(true)
  const ledger = keepLedger(up)
  for (const name of Object.keys(up.line.pids)) {
    const before = (await up.state()).pids[name]
    process.kill(before ?? 0, 'SIGKILL')
    const restarted = async () => {
      const now = (await up.state()).pids[name]
      return now !== undefined && now !== before
    }
    expect([name, await waitUntil(restarted, { deadlineMs: 10_000 })]).toEqual([name, true])
    expect([name, await waitUntil(() => worksAgain(up), { deadlineMs: recoveryDeadlineMs })]).toEqual([name, true])
    expect(up.said()).toContain(`${name} ended (SIGKILL)`)
  }
  await ledger.stop()
  expect(ledger.answers.size).toBeGreaterThan(100)
  // Asked outside the ledger: a few, each with a record of its own.
  await expectExactCounts(up, ledger.answers, ledger.cutOff() + asked)
})

it('kill -9 of the launcher: no process of the data directory is left, and the same data comes up again', async () => {
  expect(up.processes().length).toBeGreaterThanOrEqual(7)
  const counted = await decisions(up)
  await up.end('SIGKILL')
  await until(() => up.processes().length === 0, 5_000)

  const again = await weirUp(['--data', up.dir, '--timings'])
  try {
    expect(again.line.demoKey).toBe(up.line.demoKey)
    expect(again.said()).toMatch(/ s {2}kafka\n.* s {2}policy\n.* s {2}ingress\n/s)
    expect(await decisions(again)).toBe(counted)
    await until(() => worksAgain(again), recoveryDeadlineMs)
    expect(await again.end('SIGTERM')).toBe(0)
    expect(again.processes()).toEqual([])
  } finally {
    await again.close()
  }
})
