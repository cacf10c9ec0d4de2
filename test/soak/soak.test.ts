import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { countAlerts } from '../support/failure/alerts.ts'
import { openHandDamage, weirAudit } from '../support/failure/hand-damage.ts'
import { watchOutages } from '../support/failure/outages.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { untilRestored } from '../support/failure/until-restored.ts'

/** `WEIR_SOAK_MINUTES`; ten unless it says otherwise. */
const minutes = Number(process.env.WEIR_SOAK_MINUTES ?? 10)
const killEveryMs = 5_000
/** The ingress and those behind it die as often as each other. */
const victims = ['ingress', 'metering', 'alerting', 'kafka', 'clickhouse', 'redis', 'console'] as const
const perSecondAsked = 2_600
const perSecondMin = 2_000
const drainedWithinSeconds = 120

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack?.close())

it(`${minutes} minutes with a random kill every 5 s: answered = raw = rollups, nothing twice, no number left out, every alert once`, async () => {
  const kills: Record<string, number> = {}
  let perSecond = 0
  const { row, load } = await playScenario(stack, {
    fault: `a random kill every 5 s for ${minutes} minutes`,
    perSecond: perSecondAsked,
    async strike({ load: running, random }) {
      const outages = watchOutages(running)
      const began = running.progress
      const endMs = began.elapsedMs + minutes * 60_000
      while (running.progress.elapsedMs < endMs) {
        await running.forMs(killEveryMs)
        const name = random.pick(victims)
        kills[name] = (kills[name] ?? 0) + 1
        stack.signal(name, 'SIGKILL')
        // Decisions that are made without either are no decisions of Redis.
        if (name === 'ingress' || name === 'redis') outages.begin()
      }
      for (const name of victims) await stack.backAfter(name, undefined)
      const upSeconds = (running.progress.elapsedMs - began.elapsedMs - (await outages.endMs())) / 1_000
      perSecond = (running.progress.decided - began.decided) / upSeconds
    },
  })
  process.stdout.write(
    `  ${Math.round(perSecond)} decisions/s while ingress and Redis answered; kills: ${JSON.stringify(kills)}\n`,
  )
  expect(row).toEqual(exactly(row))
  expect(row.recoverSeconds).toBeLessThan(drainedWithinSeconds)
  const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
  expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
  expect(perSecond).toBeGreaterThanOrEqual(perSecondMin)
})

it('an audit of what the soak left finds nothing; what is then removed by hand it names, and repairs', async () => {
  const clean = await weirAudit(stack)
  process.stdout.write(`  audit of the soaked data: ${JSON.stringify(clean)}\n`)
  expect([clean.code, clean.findings]).toEqual([0, []])

  // Else the count that is removed is back before it is looked for.
  await untilRestored(stack)
  const hand = openHandDamage(stack)
  const before = await hand.sums()
  const used = await hand.usedByRows()
  const rollupRows = await hand.remove('usage_15m', "subject = 'wide-3'")
  const rawRows = await hand.remove(
    'decisions',
    'partition = 2 AND offset BETWEEN (SELECT max(offset) - 999 FROM weir.decisions WHERE partition = 2) AND 9e15',
  )
  const key = 'weir:1:{wide-5}:wide-day'
  await hand.forget(key)
  expect(Math.min(rollupRows, rawRows)).toBeGreaterThan(0)

  const found = await weirAudit(stack)
  expect(found.code).toBe(1)
  expect(found.findings).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ check: 'rollups', what: 'usage_15m.count' }),
      expect.objectContaining({ check: 'kafka', what: 'records without a row', found: String(rawRows) }),
      expect.objectContaining({ check: 'quotas', where: key, found: '0' }),
    ]),
  )
  const repaired = await weirAudit(stack, '--repair')
  process.stdout.write(
    `  ${rollupRows} rows of a rollup, ${rawRows} raw rows and a count removed: ${JSON.stringify(repaired)}\n`,
  )
  expect([repaired.code, repaired.left]).toEqual([0, []])
  expect(await hand.sums()).toEqual(before)
  expect((await hand.usedByRedis([key]))[key]).toBe(used[key])
  await hand.close()
})

it('after FLUSHALL every daily quota is back at what ClickHouse sums up, within ten seconds', async () => {
  const hand = openHandDamage(stack)
  const used = await hand.usedByRows()
  const keys = Object.keys(used)
  const began = performance.now()
  await hand.forgetAll()
  const isBack = async () => {
    const now = await hand.usedByRedis(keys)
    return keys.every((key) => now[key] === used[key])
  }
  const back = await waitUntil(isBack, { deadlineMs: 10_000, everyMs: 100 })
  process.stdout.write(`  ${keys.length} quotas back after ${((performance.now() - began) / 1_000).toFixed(1)} s\n`)
  expect(back).toBe(true)
  await hand.close()
})
