import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { keySlot } from '@weir/redis/key-slot.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { countAlerts } from '../support/failure/alerts.ts'
import type { RunningLoad } from '../support/failure/drive-load.ts'
import { quotaSize } from '../support/failure/failure-policy.ts'
import { masterOf, untilInSync, untilReplaced, untilReplicated } from '../support/failure/large-topology.ts'
import { exactly, playScenario, type Scene } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { readMetric } from '../support/read-metric.ts'

const perSecond = 300
const brokers = ['kafka-1', 'kafka-2', 'kafka-3'] as const
/** The slot of the deliveries' queue, and one that claims and limits have. */
const slots = ['{weir-deliveries}', '{quota-7}'].map(keySlot)
const masterKills = 4

let stack: Stack

const sumOf = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0)

/** Records in journals that Kafka does not have. */
const waitingRecords = async (): Promise<number> =>
  sumOf(
    await Promise.all(
      ['ingress', 'ingress-2'].map((name) => readMetric(stack.opsAddress(name), 'weir_journal_records_waiting')),
    ),
  )

async function holdFor({ load }: Scene, names: readonly string[], ms: number): Promise<void> {
  await Promise.all(names.map((name) => stack.hold(name)))
  const { decided } = load.progress
  await load.forMs(ms)
  expect(load.progress.decided).toBeGreaterThan(decided)
}

const release = async (names: readonly string[]) => void (await Promise.all(names.map((name) => stack.release(name))))

/** A part of the quota's units that were admitted by Redis beyond it: charges that a replica did not have. */
async function admittedTwice(subjects: readonly string[]): Promise<number> {
  const client = connectClickhouse(stack.addresses.clickhouse, 'failure-suite')
  const list = subjects.map((subject) => `'${subject}'`).join(', ')
  const query = `SELECT sum(greatest(0, admitted - ${quotaSize})) AS beyond FROM (
    SELECT sumIf(toInt64(cost * count) + adjustment, outcome = 'allow' AND reason = 'ok') AS admitted
    FROM weir.decisions WHERE subject IN (${list}) GROUP BY subject)`
  try {
    const rows = await (await client.query({ query, format: 'JSONEachRow' })).json<{ beyond: string }>()
    return Number(rows[0]?.beyond)
  } finally {
    await client.close()
  }
}

async function expectEachAlertOnce(load: RunningLoad): Promise<void> {
  const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
  const counts = `due ${due.length}, raised ${raised.length}, delivered ${delivered.length}`
  const twice = await admittedTwice(load.quotaSubjects)
  process.stdout.write(`  alerts ${counts}; admitted beyond quotas by a Redis that had lost charges: ${twice}\n`)
  expect(due.length).toBeGreaterThan(0)
  expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
}

async function play(fault: string, strike: (scene: Scene) => Promise<void>) {
  const { row, load } = await playScenario(stack, { fault, perSecond, strike })
  expect(row).toEqual(exactly(row))
  await expectEachAlertOnce(load)
  return load.progress
}

describe('three brokers, a Redis Cluster with replicas, two of each service', () => {
  beforeAll(async () => {
    stack = await startStack()
    await untilInSync(stack)
  })
  afterAll(() => stack?.close())

  it('a broker is killed, and comes back 15 s later: no request fails, every decision is counted once', async () => {
    const progress = await play('one broker of three down for 15 s', async (scene) => {
      const broker = scene.random.pick(brokers)
      await holdFor(scene, [broker], 15_000)
      await release([broker])
      await untilInSync(stack)
    })
    expect(progress).toMatchObject({ cutOff: 0, undecided: {}, unrecorded: 0 })
  })

  it('two brokers are killed, and come back 30 s later: journals grow, no request fails, every decision is counted once', async () => {
    const progress = await play('two brokers of three down for 30 s', async (scene) => {
      const left = scene.random.pick(brokers)
      const lost = brokers.filter((broker) => broker !== left)
      await holdFor(scene, lost, 10_000)
      const after10s = await waitingRecords()
      await scene.load.forMs(20_000)
      const after30s = await waitingRecords()
      process.stdout.write(`  journals held ${after10s} records after 10 s, ${after30s} after 30 s\n`)
      expect(after30s).toBeGreaterThan(after10s)
      await release(lost)
      await untilInSync(stack)
    })
    expect(progress).toMatchObject({ cutOff: 0, undecided: {}, unrecorded: 0 })
  })

  it('all brokers are restarted in turn, each once the copies are up to date: no request fails, every decision is counted once', async () => {
    const progress = await play('three brokers restarted in turn', async () => {
      for (const broker of brokers) {
        const before = stack.pid(broker)
        stack.signal(broker, 'SIGTERM')
        await stack.backAfter(broker, before)
        await untilInSync(stack)
      }
    })
    expect(progress).toMatchObject({ cutOff: 0, undecided: {}, unrecorded: 0 })
  })

  it('masters of Redis are killed under ingress and alerting: every decision is counted once, every alert is out once', async () => {
    await play(
      `one of three masters of Redis lost beside three brokers, ${masterKills} times`,
      async ({ load, random }) => {
        for (let kill = 0; kill < masterKills; kill += 1) {
          await load.forMs(random.integer(1_000, 4_000))
          const slot = slots[kill % slots.length] ?? 0
          const master = (await masterOf(stack, slot)) ?? ''
          await stack.hold(master)
          await untilReplaced(stack, slot, master)
          await stack.release(master)
          await untilReplicated(stack)
        }
      },
    )
  })

  it('a zone is lost for 20 s, a broker, a master of Redis and one of each service: every decision is counted once, every alert is out once', async () => {
    await play('a zone lost for 20 s', async (scene) => {
      const slot = slots[0] ?? 0
      const master = (await masterOf(stack, slot)) ?? ''
      const zone = [scene.random.pick(brokers), master, 'ingress-2', 'metering-2', 'alerting-2']
      await holdFor(scene, zone, 20_000)
      await untilReplaced(stack, slot, master)
      await release(zone)
      await untilReplicated(stack)
      await untilInSync(stack)
    })
  })
})
