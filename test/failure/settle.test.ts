import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, it } from 'vitest'
import { openCounter } from '../support/failure/count.ts'
import { keyOf, subjectId } from '../support/failure/failure-policy.ts'
import { startStack } from '../support/failure/stack.ts'
import { untilRestored } from '../support/failure/until-restored.ts'
import { forFile } from '../support/opened.ts'
import { until } from '../support/until.ts'

const stack = await forFile(startStack({ oneOfEach: true }))
await untilRestored(stack)

const decisions = 20
const [charged, cost] = [5, 3]
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

/**
 * Asks for twenty decisions, kills the ingress at the third that it settles, and settles them again and again until
 * each is answered.
 */
async function settleThroughKill(step: string, subject: string) {
  const checks: Promise<Record<string, unknown> | undefined>[] = []
  for (let index = 0; index < decisions; index += 1) {
    checks.push(ask(subject, '/v1/check', { method: 'GET', route: '/settled', cost: charged, settle: '10m' }))
  }
  const ids = (await Promise.all(checks)).map((body) => body?.id)
  const deaths = () => stack.said.filter((line) => line.includes(' ingress ended (SIGKILL)')).length
  const before = deaths()
  const pid = stack.pid('ingress')
  stack.killInto('ingress', [{ WEIR_CRASH_AT: `ingress.${step}:3` }])
  await stack.backAfter('ingress', pid)
  const settled = Promise.all(
    ids.map((id) =>
      waitUntil(() => ask(subject, '/v1/settle', { id, cost }), { deadlineMs: settleDeadlineMs, everyMs: 500 }),
    ),
  )
  // The first death is ours, the second is the step's.
  await until(() => deaths() >= before + 2)
  await stack.backAfter('ingress', undefined)
  return { subject, settled }
}

it('an ingress killed while it settles: a client that repeats until it is answered has each decision corrected once, in Redis and in the sums', async () => {
  const killed: Awaited<ReturnType<typeof settleThroughKill>>[] = []
  for (const [index, step] of ['settle.corrected', 'settle.written', 'settle.recorded'].entries()) {
    killed.push(await settleThroughKill(step, subjectId('settled', index)))
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
    expect(peek?.limits).toEqual([expect.objectContaining({ used: decisions * cost })])
  }
  const isSummed = async () => (await counter.rollupDifferences()) === 0
  await until(isSummed, 10_000)
  await counter.close()
})
