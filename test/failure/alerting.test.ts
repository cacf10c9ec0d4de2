import { keySlot } from '@weir/redis/key-slot.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { settledLedger } from '../support/alerting/alert-ledger.ts'
import { openAlertingStack } from '../support/alerting/open-alerting.ts'
import { forFile } from '../support/opened.ts'
import { createSeededRandom, type SeededRandom } from '../support/seeded-random.ts'
import { startCluster } from '../support/servers/redis-cluster.ts'
import { startSentinels } from '../support/servers/redis-sentinel.ts'

const stack = await forFile(openAlertingStack(['ops']))

/** One in twenty uses up its quota with one decision, which raises the higher alert alone. */
const jumps = (at: number) => at % 20 === 0
const namesOf = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}-${at}`)
const dueOf = (subjects: readonly string[]) =>
  subjects.flatMap((subject, at) => (jumps(at) ? [`${subject} 100`] : [`${subject} 100`, `${subject} 80`])).sort()

const stepMs = 500
const steps = 60

/** What is decided at each step: of each subject 50%, 80% and 100% at steps of its own, in this order. */
function plan(subjects: readonly string[], random: SeededRandom) {
  const decisions = subjects.flatMap((subject, at) => {
    const places = [0, 0, 0].map(() => random.integer(0, steps - 1)).sort((one, other) => one - other)
    const uses = jumps(at) ? [500, 1_000] : [500, 800, 1_000]
    return uses.map((used, nth) => ({ subject, used, step: places[nth] ?? 0 }))
  })
  return (step: number, used: number) =>
    decisions.flatMap((one) => (one.step === step && one.used === used ? [one.subject] : []))
}

/** A Redis whose masters can be killed, one after another. */
interface FailingRedis {
  readonly url: string
  killMaster(): Promise<void>
  close(): Promise<void>
}

const failingRedis: Readonly<Record<string, () => Promise<FailingRedis>>> = {
  async Sentinel() {
    const { url, servers, close } = await startSentinels()
    return { url, close, killMaster: async () => servers[0]?.signal('SIGKILL') }
  },
  async Cluster() {
    const cluster = await startCluster({ replicas: 1 })
    const { urlOfAll: url, close } = cluster
    return { url, close, killMaster: async () => (await cluster.holderOf(keySlot('{weir-deliveries}'))).kill() }
  },
}

describe('alerting', () => {
  it.for(Object.keys(failingRedis))(
    'three processes, one killed every 3 s, a rebalance, a %s that fails over: each alert once, none missing',
    async (kind) => {
      const random = createSeededRandom()
      const subjects = namesOf(`crossing-${kind}`, 1_000)
      const decided = plan(subjects, random)
      const redis = await failingRedis[kind]?.()
      if (redis === undefined) throw new Error(`no ${kind}`)
      const environment = { WEIR_REDIS_URL: redis.url }
      const processes = await Promise.all([0, 1, 2].map(() => stack.start(environment)))
      onTestFinished(async () => {
        await Promise.all(processes.map((one) => one.kill('SIGKILL')))
        await redis.close()
      })
      let guest: (typeof processes)[number] | undefined
      let kills = 0
      const startedAt = performance.now()
      for (let step = 0; step < steps; step += 1) {
        for (const used of [500, 800, 1_000]) await stack.decide(decided(step, used), used)
        if (step % 6 === 5) {
          const at = kills % processes.length
          await processes[at]?.kill('SIGKILL')
          processes[at] = await stack.launch(environment)
          kills += 1
        }
        if (step === 20) await redis.killMaster()
        if (step === 30) guest = await stack.launch(environment)
        if (step === 45) await guest?.kill('SIGTERM')
        const nextAt = startedAt + (step + 1) * stepMs
        await waitUntil(() => performance.now() >= nextAt, { deadlineMs: stepMs })
      }
      const due = dueOf(subjects)
      const ledger = await settledLedger(stack, subjects, { alerts: due.length, deadlineMs: 300_000 })
      const { raised, delivered, raisedAgain, deliveredAgain } = ledger
      const found = {
        kills,
        due: due.length,
        ids: raised.length,
        delivered: delivered.length,
        raisedAgain,
        deliveredAgain,
      }
      process.stdout.write(`  ${kind}, seed ${random.seed}: ${JSON.stringify(found)}\n`)
      expect(raised).toEqual(due)
      expect(delivered).toEqual(due)
    },
  )

  it.for([
    'claim',
    'supersede',
    'publish',
    'done',
    'commit',
    'enqueue',
    'enqueue_commit',
    'attempt',
    'attempt_recorded',
  ])('killed at %s: each alert once, none missing', async (step) => {
    const subjects = namesOf(step, 40)
    // It may crash on what the step before has left, before it is ready.
    const doomed = await stack.launch({ WEIR_CRASH_AT: `alerting.${step}` })
    for (const used of [500, 800, 1_000]) {
      await stack.decide(
        subjects.filter((_, at) => used !== 800 || !jumps(at)),
        used,
      )
    }
    await doomed.ended
    const next = await stack.start()
    const due = dueOf(subjects)
    const ledger = await settledLedger(stack, subjects, { alerts: due.length, deadlineMs: 120_000 })
    const { raised, delivered, raisedAgain, deliveredAgain } = ledger
    process.stdout.write(
      `  ${step}: ${due.length} due, raised again ${raisedAgain}, delivered again ${deliveredAgain}\n`,
    )
    expect(raised).toEqual(due)
    expect(delivered).toEqual(due)
    await next.kill('SIGTERM')
  })
})
