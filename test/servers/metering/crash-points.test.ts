import { encodeGapOpen } from '@weir/contracts/journal.v1.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type MeteringStack, newJournal, once, openMeteringStack, settled } from './open-metering.ts'

let stack: MeteringStack
beforeAll(async () => {
  stack = await openMeteringStack()
})
afterAll(() => stack?.close())

// Every other step: joint-blocks.test.ts.
test('killed at the numbers of a block without rows, every record that comes later is in every table once', async () => {
  const journal = newJournal()
  const gap = encodeGapOpen({ cause: 'refused', count: 1, fromMs: 0, toMs: 0, detail: '' })
  await stack.send([`${gap},"journal":"${journal.id}","seq":0}`])
  const victim = await stack.start({ WEIR_CRASH_AT: 'metering.numbers' })
  onTestFinished(() => victim.kill('SIGKILL'))
  await victim.ended
  await stack.send(journal.take(100, 0, { seq: 1 }))
  const heir = await stack.start()
  onTestFinished(() => heir.kill('SIGKILL'))
  expect(await settled(stack, journal.subject, 100)).toEqual(once(100))
  await heir.kill('SIGTERM')
})
