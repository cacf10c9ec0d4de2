import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, test } from 'vitest'
import { openIngressStack } from '../support/ingress-stack.ts'
import { folderForTest, forTest } from '../support/opened.ts'
import { readDecisions } from '../support/servers/read-decisions.ts'

/** Below the minute after which another process writes what is still owed. */
const toldWithinMs = 40_000

async function ask(api: string, path: string, key: string, body: object) {
  const headers = { 'content-type': 'application/json', 'x-api-key': key }
  const answer = await fetch(`${api}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: answer.status, body: Object(await answer.json()) }
}

test('a process killed after it wrote a correction: another that lives on its machine takes its journal over, and a repeat there writes none', async () => {
  const subject = 'settled'
  const policy = {
    version: 1,
    plans: { free: { limits: ['day'] } },
    limits: { day: { algorithm: 'fixed_window', size: 100, window: '7d' } },
    subjects: { [subject]: { plan: 'free', keys: [{ sha256: sha256(subject) }] } },
  }
  // Removed after the processes that write to it have ended.
  const journals = { WEIR_JOURNAL_DIR: await folderForTest('journal') }
  const stack = await forTest(openIngressStack(policy))
  const living = await stack.start(journals)
  const dying = await stack.start({ ...journals, WEIR_CRASH_AT: 'ingress.settle.written' })

  const checked = await ask(dying.api, '/v1/check', subject, { cost: 5, settle: '10m' })
  const wish = { id: checked.body.id, cost: 3 }
  await expect(ask(dying.api, '/v1/settle', subject, wish)).rejects.toThrow()
  const isSettled = async () => (await ask(living.api, '/v1/settle', subject, wish)).status === 200
  expect(await waitUntil(isSettled, { deadlineMs: toldWithinMs, everyMs: 500 })).toBe(true)

  // A second correction would stand before this, in the same journal and partition.
  const { body: last } = await ask(living.api, '/v1/check', subject, { cost: 1 })
  const records = await readDecisions(
    stack.kafka,
    (one) => one.subject === subject,
    (found) => found.some(({ id }) => id === last.id) && found.some(({ corrects }) => corrects !== undefined),
  )
  const corrections = new Map(records.filter(({ corrects }) => corrects !== undefined).map((one) => [one.journal, one]))
  expect([...corrections.values()]).toMatchObject([{ corrects: wish.id, adjustment: -2 }])
})
