import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { expect, it } from 'vitest'
import { after } from '../support/after.ts'
import { type LeasingApp, startLeasingApp, totalOf, windowsOf } from '../support/client/leasing-apps.ts'
import { openCounter } from '../support/failure/count.ts'
import { weirAudit } from '../support/failure/hand-damage.ts'
import { startStack } from '../support/failure/stack.ts'
import { untilRestored } from '../support/failure/until-restored.ts'
import { untilSettled } from '../support/failure/until-settled.ts'
import { forFile } from '../support/opened.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { until } from '../support/until.ts'

/** Two applications ask for more than the limit has while they do, so that it is met, and leave leases unused. */
const [size, windowMs, apps, perSecond] = [3_000, 4_000, 2, 1_000]
/** Of an application: a lease at most, and as many checks as it has on their way. */
const lostPerKill = apps * (size / 8 + 200)
/** Longer than any scenario: the applications are stopped by the test. */
const seconds = 600
const subjects = ['steps', 'redis', 'clocks']

const stack = await forFile(
  startStack({
    oneOfEach: true,
    policy: JSON.stringify({
      version: 1,
      plans: { app: { limits: ['window', 'app-day'], clientLease: '1s' } },
      limits: {
        window: { algorithm: 'fixed_window', size, window: `${windowMs}ms`, onUnavailable: 'deny' },
        'app-day': { algorithm: 'fixed_window', size: 100_000_000, period: 'day', onUnavailable: 'deny' },
      },
      subjects: Object.fromEntries(subjects.map((name) => [name, { plan: 'app' }])),
    }),
  }),
)
const counter = await forFile(openCounter(stack.addresses.clickhouse))
await untilRestored(stack)

const ofLeases = ['lease.peeked', 'lease.charged', 'journal_due', 'journal_written', 'lease.written']
const ofSettlements = ['settle.corrected', 'settle.written', 'settle.recorded', 'send', 'answer']
const ingressSteps = [...ofLeases, ...ofSettlements]

const startApps = (subject: string, env: (at: number) => Readonly<Record<string, string>> = () => ({})) =>
  Array.from({ length: apps }, (_, at) => {
    const url = `http://127.0.0.1:${stack.ports.api}`
    const token = stack.secrets.adminToken
    return startLeasingApp({ url, token, subject, windowMs, perSecond, seconds, env: { PAUSE_MS: '1500', ...env(at) } })
  })

/** Until they decide with leases, all of them. */
const untilLeasing = async (running: readonly LeasingApp[], more = 1_000) => {
  const before = running.map((app) => app.said().local)
  await until(() => running.every((app, at) => app.said().local > (before[at] ?? 0) + more))
}

/** Stops them, and says what they were admitted, beside what is recorded of them once all of it is metered. */
async function compare(running: readonly LeasingApp[], subject: string, fault: string) {
  for (const { child } of running) child.kill('SIGTERM')
  await Promise.all(running.map(({ ended }) => ended))
  const said = running.map((app) => app.said())
  await untilSettled(stack)
  const { counted, units } = await counter.admittedOf(subject)
  const windows = windowsOf(said)
  const found = { reported: totalOf(said), counted, units, most: Math.max(...windows), windows: windows.length }
  const leases = said.map((one) => ({ ...one.leases, single: one.single, failed: one.failed }))
  process.stdout.write(`  ${fault}: ${JSON.stringify({ ...found, leases })}\n`)
  expect(said.map(({ isEnd }) => isEnd)).toEqual(running.map(() => true))
  expect(counted).toBe(units)
  expect(counted).toBeGreaterThanOrEqual(found.reported)
  return found
}

it('An ingress that is killed between every two steps of leases: no window is exceeded, and nothing is counted too little', async () => {
  const random = createSeededRandom()
  const running = startApps('steps')
  await untilLeasing(running)
  const deaths = () => stack.said.filter((line) => line.includes(' ingress ended (SIGKILL)')).length
  const wanted = deaths() + 1 + ingressSteps.length
  // The first death is ours, the others are the steps'.
  stack.killInto(
    'ingress',
    ingressSteps.map((step) => ({ WEIR_CRASH_AT: `ingress.${step}:${random.integer(1, 3)}` })),
  )
  await until(() => deaths() >= wanted, 300_000)
  await stack.backAfter('ingress', undefined)
  await untilLeasing(running)
  const found = await compare(running, 'steps', `seed ${random.seed}, ingress killed ${ingressSteps.length + 1} times`)
  expect(found.most).toBeLessThanOrEqual(size)
  expect(found.counted - found.reported).toBeLessThanOrEqual((ingressSteps.length + 1) * lostPerKill)
})

it('A Redis that is killed at any moment of leases: nothing is counted too little, and the quota is as used', async () => {
  const random = createSeededRandom()
  const running = startApps('redis')
  const kills = 6
  for (let kill = 0; kill < kills; kill += 1) {
    await untilLeasing(running)
    await after(random.integer(0, 1_000))
    const before = stack.pid('redis')
    stack.signal('redis', 'SIGKILL')
    await stack.backAfter('redis', before)
  }
  await untilLeasing(running)
  const found = await compare(running, 'redis', `seed ${random.seed}, Redis killed ${kills} times`)
  // A window may begin again, without what was lost.
  expect(found.most).toBeLessThanOrEqual(2 * size)
  expect(found.counted - found.reported).toBeLessThanOrEqual(kills * lostPerKill)
  await untilRestored(stack)
  expect((await weirAudit(stack)).findings).toEqual([])
})

it('Clocks of applications and of an ingress that are set by 30 s and by an hour: no window is exceeded', async () => {
  const shift = join(projectRoot, 'test', 'support', 'failure', 'shift-clock.ts')
  const clockFile = (name: string) => join(stack.dir, `clock-${name}`)
  const envOf = (name: string) => ({ NODE_OPTIONS: `--import=${shift}`, WEIR_TEST_CLOCK_FILE: clockFile(name) })
  const before = stack.pid('ingress')
  stack.killInto('ingress', [envOf('ingress')])
  await stack.backAfter('ingress', before)
  const running = startApps('clocks', (at) => envOf(`app-${at}`))
  await untilLeasing(running)
  const stepsMs = [30_000, -30_000, 3_600_000, -3_600_000, 0]
  for (const offsetMs of stepsMs) {
    for (const name of ['app-0', 'ingress', 'app-1']) {
      writeFileSync(clockFile(name), String(offsetMs))
      await untilLeasing(running, 300)
    }
  }
  const found = await compare(running, 'clocks', `clocks set ${3 * stepsMs.length} times`)
  expect(found.most).toBeLessThanOrEqual(size)
  // Units of a lease that was out when a clock was set may be settled too late.
  expect(found.counted - found.reported).toBeLessThanOrEqual(3 * stepsMs.length * 2 * (size / 8))
})
