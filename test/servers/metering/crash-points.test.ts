import { encodeGapOpen, encodeMark } from '@weir/contracts/journal.v1.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { endSessions, type MeteringStack, newJournal, once, openMeteringStack, settled } from './open-metering.ts'

let stack: MeteringStack
beforeAll(async () => {
  stack = await openMeteringStack()
})
afterAll(() => stack?.close())

const month = (ms: number) => new Date(ms).toISOString().slice(0, 7)

describe('killed at a step of the order of effects, every record is in every table once', () => {
  test.each(['declare', 'dead_letters', 'insert', 'insert:2', 'redeclare', 'numbers', 'marks', 'gaps', 'commit'])(
    '%s',
    async (step) => {
      const journal = newJournal()
      const [other = ''] = newJournal().take(1)
      const mark = encodeMark(Date.now(), journal.id, 501, false)
      const gap = encodeGapOpen({ cause: 'refused', count: 1, fromMs: 0, toMs: 0, detail: '' })
      const lastMonth = Date.parse(`${month(Date.now())}-01`) - 86_400_000 // within what minutes are kept for
      expect(month(lastMonth)).not.toBe(month(Date.now()))
      // Two months in one block, a dead letter, a gap, a mark: every step has something to do.
      const bad = step === 'redeclare' ? other.replace('"cost":2', '"cost":"much"') : 'bad'
      const numbered = [...journal.take(300), bad, ...journal.take(200, 0, { tsMs: lastMonth })]
      await stack.send([...numbered, `${gap},"journal":"${journal.id}","seq":500}`, mark])
      const victim = await stack.start({ WEIR_CRASH_AT: `metering.${step}` })
      onTestFinished(() => victim.kill('SIGKILL'))
      await victim.ended
      await endSessions(stack.options)
      await stack.send(journal.take(100, 0, { seq: 501 }))
      const heir = await stack.start()
      onTestFinished(() => heir.kill('SIGKILL'))
      expect(await settled(stack, journal.subject, 600)).toEqual(once(600))
      await heir.kill('SIGTERM')
      expect(heir.said()).not.toContain('numbers that never came')
    },
  )

  test('numbers of a block without rows', async () => {
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
})
