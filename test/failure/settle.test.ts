import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, it } from 'vitest'
import { openCounter } from '../support/failure/count.ts'
import { failurePolicy, keyOf, subjectId, tokensSize } from '../support/failure/failure-policy.ts'
import { startStack } from '../support/failure/stack.ts'
import { untilRestored } from '../support/failure/until-restored.ts'
import { forFile } from '../support/opened.ts'
import { until } from '../support/until.ts'

const stack = await forFile(startStack({ oneOfEach: true, policy: failurePolicy({ withHolds: true }) }))
await untilRestored(stack)

const decisions = 20
const [charged, cost] = [5, 3]
/** Tokens that each holds, and is settled to. */
const [held, used] = [40, 7]
const [heldUnits, usedUnits] = [{ tokens: held }, { tokens: used }]
/** A repeat may have to wait for a minute until another process may write the record (docs/check-api.md). */
const settleDeadlineMs = 150_000

async function ask(subject: string, path: string, body: object): Promise<Record<string, unknown> | undefined> {
  try {
    const answer = await fetch(`http://127.0.0.1:${stack.ports.api}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': keyOf(subject) },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(5_000),
    })
    const found: unknown = await answer.json()
    return answer.status === 200 && typeof found === 'object' ? { ...found } : undefined
  } catch {
    return undefined // The process died under it.
  }
}

/** Starts an ingress that dies the third time that it passes a step. Returns what waits until it did and is back. */
async function crashAt(step: string): Promise<() => Promise<void>> {
  const deaths = () => stack.said.filter((line) => line.includes(' ingress ended (SIGKILL)')).length
  const before = deaths()
  const pid = stack.pid('ingress')
  stack.killInto('ingress', [{ WEIR_CRASH_AT: `ingress.${step}:3` }])
  await stack.backAfter('ingress', pid)
  return async () => {
    // The first death is ours, the second is the step's.
    await until(() => deaths() >= before + 2)
    await stack.backAfter('ingress', undefined)
  }
}

/**
 * Asks for twenty decisions, kills the ingress at the third that it settles, and settles them again and again until
 * each is answered.
 */
async function settleThroughKill(step: string, subject: string) {
  const checks: Promise<Record<string, unknown> | undefined>[] = []
  for (let index = 0; index < decisions; index += 1) {
    checks.push(
      ask(subject, '/v1/check', { method: 'GET', route: '/settled', cost: charged, units: heldUnits, settle: '10m' }),
    )
  }
  const ids = (await Promise.all(checks)).map((body) => body?.id)
  const untilDead = await crashAt(step)
  const settled = Promise.all(
    ids.map((id) =>
      waitUntil(() => ask(subject, '/v1/settle', { id, cost, units: usedUnits }), {
        deadlineMs: settleDeadlineMs,
        everyMs: 500,
      }),
    ),
  )
  await untilDead()
  return { subject, settled }
}

/**
 * Asks one after the other for twenty decisions, and the ingress dies at the third group of records that it writes.
 * Returns the ids of those that were answered.
 */
async function holdThroughKill(step: string, subject: string): Promise<readonly unknown[]> {
  const untilDead = await crashAt(step)
  const ids: unknown[] = []
  for (let index = 0; index < decisions; index += 1) {
    const body = { method: 'GET', route: '/settled', units: heldUnits, settle: '10m' }
    const answer = await ask(subject, '/v1/check', body)
    if (answer !== undefined) ids.push(answer.id)
    else await untilDead()
  }
  return ids
}

/** What Redis counts of a subject's tokens. */
async function tokensIn(subject: string) {
  const body = { method: 'GET', route: '/settled', cost: 0, units: { tokens: 0 }, peek: true }
  const { limits } = (await ask(subject, '/v1/check', body)) ?? {}
  const found = Array.isArray(limits) ? limits.find(({ name }) => name === 'tokens-day') : undefined
  return { used: found?.used, held: tokensSize - found?.remaining - found?.used }
}

it('an ingress killed while it settles: a client that repeats until it is answered has each decision corrected once, in Redis and in the sums', async () => {
  const killed: Awaited<ReturnType<typeof settleThroughKill>>[] = []
  for (const [index, step] of ['settle.corrected', 'settle.written', 'settle.recorded'].entries()) {
    killed.push(await settleThroughKill(step, subjectId('held', index)))
  }
  const counter = openCounter(stack.addresses.clickhouse)
  for (const { subject, settled } of killed) {
    const adjustments = (await settled).map((body) => body?.adjustment)
    expect(adjustments).toEqual(adjustments.map(() => cost - charged))
    const isIn = async () => (await counter.unitsOf(subject)) <= decisions * cost
    await waitUntil(isIn, { deadlineMs: 60_000, everyMs: 500 })
    expect([await counter.unitsOf(subject), await counter.correctionsOf(subject)]).toEqual([
      decisions * cost,
      decisions,
    ])
    const peek = await ask(subject, '/v1/check', { method: 'GET', route: '/settled', cost: 0, peek: true })
    expect(peek?.limits).toMatchObject([{ used: decisions * cost }, { used: decisions * used }, { used: 0 }])
    expect(await tokensIn(subject)).toEqual({ used: decisions * used, held: 0 })
    expect(await counter.tokensOf(subject)).toEqual({ held: decisions * held, settled: decisions * used, open: [] })
  }
  const isSummed = async () => (await counter.rollupDifferences()) === 0
  await until(isSummed, 10_000)
  await counter.close()
})

it('an ingress killed between a hold and its answer: the hold is for nobody, and listed if it has a record, so that it can be settled', async () => {
  const counter = openCounter(stack.addresses.clickhouse)
  for (const [index, step] of ['journal_due', 'journal_written'].entries()) {
    const subject = subjectId('held', 3 + index)
    const ids = await holdThroughKill(step, subject)
    const lost = decisions - ids.length
    expect(lost).toBe(1)
    expect(await tokensIn(subject)).toEqual({ used: 0, held: decisions * held })
    const recorded = ids.length + (step === 'journal_written' ? 1 : 0)
    const isIn = async () => (await counter.tokensOf(subject)).open.length >= recorded
    await waitUntil(isIn, { deadlineMs: 60_000, everyMs: 500 })
    const { open } = await counter.tokensOf(subject)
    expect(open).toHaveLength(recorded)
    expect(open).toEqual(expect.arrayContaining([...ids]))
    for (const id of open) expect(await ask(subject, '/v1/settle', { id, units: usedUnits })).toBeDefined()
    const forNobody = (decisions - recorded) * held
    expect(await tokensIn(subject)).toEqual({ used: recorded * used, held: forNobody })
  }
  await counter.close()
})
