import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type MeteringStack, newJournal, once, openMeteringStack, settled } from './open-metering.ts'

let stack: MeteringStack
beforeAll(async () => {
  stack = await openMeteringStack()
})
afterAll(() => stack?.close())

const month = (ms: number) => new Date(ms).toISOString().slice(0, 7)

describe('killed at a step of the order of effects, every record is in every table once', () => {
  test.each(['declare', 'insert', 'numbers', 'marks', 'commit', 'insert:2'])('%s', async (step) => {
    const journal = newJournal()
    const mark = `{"v":1,"mark":"2026-01-01 00:00:00.000","journal":"${journal.id}","seq":500,"end":false}`
    const lastMonth = Date.parse(`${month(Date.now())}-01`) - 86_400_000 // within what minutes are kept for
    expect(month(lastMonth)).not.toBe(month(Date.now()))
    // Two months in one block, a mark, and a last record that is no row: every step has something to do.
    await stack.send([...journal.take(300), ...journal.take(200, 0, { tsMs: lastMonth }), mark])
    const victim = await stack.start({ WEIR_CRASH_AT: `metering.${step}` })
    await victim.ended
    await stack.send(journal.take(100))
    const heir = await stack.start()
    onTestFinished(() => heir.kill('SIGKILL'))
    expect(await settled(stack, journal.subject, 600)).toEqual(once(600))
    await heir.kill('SIGTERM')
    expect(heir.said()).not.toContain('numbers that never came')
  })
})
