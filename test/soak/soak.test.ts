import { expect, it } from 'vitest'
import { startLeasingApp, totalOf } from '../support/client/leasing-apps.ts'
import { countAlerts } from '../support/failure/alerts.ts'
import { openCounter } from '../support/failure/count.ts'
import type { RunningLoad } from '../support/failure/drive-load.ts'
import { failurePolicy, leasedSubjects, subjectCounts, subjectId } from '../support/failure/failure-policy.ts'
import { type Finding, weirAudit } from '../support/failure/hand-damage.ts'
import { isLarge } from '../support/failure/is-large.ts'
import { watchOutages } from '../support/failure/outages.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { settleHeld, unsettledOf } from '../support/failure/settle-held.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { untilSettled } from '../support/failure/until-settled.ts'
import { forFile } from '../support/opened.ts'

/** `WEIR_SOAK_MINUTES`; ten unless it says otherwise. */
const minutes = Number(process.env.WEIR_SOAK_MINUTES ?? 10)
const killEveryMs = 5_000
/** Of each as many answer on a large topology as share two cores with three brokers and six nodes of a Cluster. */
const [perSecondAsked, perSecondMin] = isLarge ? [500, 300] : [2_600, 2_000]
/** Two thirds of the victims of a large topology are away for a time between these, so that others take over. */
const [downMinMs, downMaxMs] = [3_000, 12_000]
const drainedWithinSeconds = 120

const stack = await forFile(startStack({ policy: failurePolicy({ withHolds: true }) }))
const counter = await forFile(openCounter(stack.addresses.clickhouse))

/** Applications that decide with leases, and what they were admitted in the end. */
function startApps() {
  const url = `http://127.0.0.1:${stack.ports.api}`
  const settings = { url, token: stack.secrets.adminToken, windowMs: 86_400_000, perSecond: 100, seconds: 60 * 60 * 24 }
  const apps = leasedSubjects.map((subject) => startLeasingApp({ ...settings, subject }))
  return {
    async end() {
      for (const { child } of apps) child.kill('SIGTERM')
      await Promise.all(apps.map(({ ended }) => ended))
    },
    said: () => apps.map((app) => app.said()),
  }
}

/** The ingress and those behind it die as often as each other; on a large topology, each process of them. */
function victimsOf({ names }: Stack): readonly [string, ...string[]] {
  const [first = '', ...others] = names.filter((name) => name !== 'demo')
  return [first, ...others]
}

/** Keeps parts away, each once at a time; `ended` waits until all are back. */
function openDowns(load: RunningLoad) {
  const down = new Map<string, Promise<void>>()
  const begin = (name: string, ms: number, away: () => unknown, back: () => unknown) => {
    const keep = async () => {
      await away()
      await load.forMs(ms)
      await back()
      down.delete(name)
    }
    down.set(name, keep())
  }
  return {
    isDown: (name: string) => down.has(name),
    keepDown: (name: string, ms: number) =>
      begin(
        name,
        ms,
        () => stack.hold(name),
        () => stack.release(name),
      ),
    /** As a network that is cut: it hears and says nothing, and goes on afterwards as if nothing had been. */
    cutOff: (name: string, ms: number) =>
      begin(
        name,
        ms,
        () => stack.signal(name, 'SIGSTOP'),
        () => stack.signal(name, 'SIGCONT'),
      ),
    ended: async () => void (await Promise.all(down.values())),
  }
}

it(`${minutes} minutes with a random kill every 5 s: answered = raw = rollups, nothing twice, no number left out, every alert once`, async () => {
  const kills: Record<string, number> = {}
  const ways: Record<string, number> = {}
  let perSecond = 0
  const apps = startApps()
  const { row, load } = await playScenario(stack, {
    fault: `a random kill every 5 s for ${minutes} minutes${isLarge ? ' beside three brokers' : ''}`,
    perSecond: perSecondAsked,
    withHolds: true,
    async strike({ load: running, random }) {
      const outages = watchOutages(running)
      const downs = openDowns(running)
      const victims = victimsOf(stack)
      const began = running.progress
      const endMs = began.elapsedMs + minutes * 60_000
      while (running.progress.elapsedMs < endMs) {
        await running.forMs(killEveryMs)
        const name = random.pick(victims)
        if (downs.isDown(name)) continue
        kills[name] = (kills[name] ?? 0) + 1
        const how = isLarge ? random.pick(['killed', 'kept down', 'cut off']) : 'killed'
        ways[how] = (ways[how] ?? 0) + 1
        const awayMs = random.integer(downMinMs, downMaxMs)
        if (how === 'kept down') downs.keepDown(name, awayMs)
        else if (how === 'cut off') downs.cutOff(name, awayMs)
        else stack.signal(name, 'SIGKILL')
        // Decisions that are made without either are no decisions of Redis.
        if (name === 'ingress' || name === 'redis') outages.begin()
      }
      await downs.ended()
      for (const name of victims) await stack.backAfter(name, undefined)
      await apps.end()
      const upSeconds = (running.progress.elapsedMs - began.elapsedMs - (await outages.endMs())) / 1_000
      perSecond = (running.progress.decided - began.decided) / upSeconds
    },
  })
  process.stdout.write(
    `  ${Math.round(perSecond)} decisions/s while ingress and Redis answered; kills: ${JSON.stringify(kills)}, ${JSON.stringify(ways)}\n`,
  )
  expect(row).toEqual(exactly(row))
  expect(row.recoverSeconds).toBeLessThan(drainedWithinSeconds)
  const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
  expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
  for (const [at, said] of apps.said().entries()) {
    const { counted, units } = await counter.admittedOf(leasedSubjects[at] ?? '')
    const { admitted: _, ...about } = said
    const reported = totalOf([said])
    process.stdout.write(`  with leases: ${JSON.stringify({ reported, counted, units, ...about })}\n`)
    expect(units).toBe(counted)
    expect(counted).toBeGreaterThanOrEqual(reported)
  }
  expect(perSecond).toBeGreaterThanOrEqual(perSecondMin)
})

it('an audit of what the soak left finds nothing once what ingresses died over is settled', async () => {
  const subjects = Array.from({ length: subjectCounts.metered }, (_, index) => subjectId('metered', index))
  let held = 0
  for (const subject of subjects) {
    for (const { id } of await unsettledOf(stack, subject)) {
      held += 1
      await settleHeld(stack, { subject, id }, { bytes: 0 })
    }
  }
  await untilSettled(stack)
  for (const subject of subjects) expect(await unsettledOf(stack, subject)).toEqual([])
  process.stdout.write(`  metered requests that an ingress died over: ${held}\n`)
  const clean = await weirAudit(stack)
  process.stdout.write(`  audit of the soaked data: ${JSON.stringify(clean)}\n`)
  // A Redis that failed over may have lost charges.
  const isLost = ({ check }: Finding) => isLarge && check === 'quotas'
  expect(clean.findings.filter((finding) => !isLost(finding))).toEqual([])
  expect(clean.code).toBe(clean.findings.length === 0 ? 0 : 1)
})
