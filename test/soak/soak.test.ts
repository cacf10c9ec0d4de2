import { afterAll, beforeAll, expect, it } from 'vitest'
import { countAlerts } from '../support/failure/alerts.ts'
import { watchOutages } from '../support/failure/outages.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'

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
