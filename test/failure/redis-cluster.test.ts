import { keySlot } from '@weir/redis/key-slot.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, it } from 'vitest'
import { countAlerts } from '../support/failure/alerts.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { startStack } from '../support/failure/stack.ts'
import { forFile } from '../support/opened.ts'
import { type ClusterNode, startCluster } from '../support/servers/redis-cluster.ts'

const cluster = await forFile(startCluster({ replicas: 1 }))
const stack = await forFile(startStack({ environment: { WEIR_REDIS_URL: cluster.urlOfAll } }))

const kills = 4

/** The slot of the deliveries' queue, and one that claims and limits have. */
const slots = ['{weir-deliveries}', '{quota-7}'].map(keySlot)

/** Waits until another node holds the slot, and until the killed one, started again, follows it. */
async function untilFailedOver(slot: number, killed: ClusterNode): Promise<void> {
  const isReplaced = async () => (await cluster.holderOf(slot)).id !== killed.id
  if ((await waitUntil(isReplaced, { deadlineMs: 20_000 })) !== true) throw new Error('no replica took over')
  await killed.restart()
  const follows = async () => (await killed.redis.info('replication').catch(() => '')).includes('master_link_status:up')
  if ((await waitUntil(follows, { deadlineMs: 20_000 })) !== true) throw new Error('the killed master does not follow')
}

it('a Cluster under ingress and alerting, whose masters are killed: every decision is counted once, and every alert is out once', async () => {
  const { row, load } = await playScenario(stack, {
    fault: `a Redis Cluster loses a master, ${kills} times`,
    perSecond: 500,
    async strike({ load, random }) {
      for (let kill = 0; kill < kills; kill += 1) {
        const slot = slots[kill % slots.length] ?? 0
        await load.forMs(random.integer(1_000, 4_000))
        const master = await cluster.holderOf(slot)
        await master.kill()
        await untilFailedOver(slot, master)
      }
    },
  })
  expect(row).toEqual(exactly(row))
  const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
  process.stdout.write(`  alerts due ${due.length}, raised ${raised.length}, delivered ${delivered.length}\n`)
  expect(due.length).toBeGreaterThan(0)
  expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
})
