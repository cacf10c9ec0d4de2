import { keySlot } from '@weir/redis/key-slot.ts'
import { expect, it } from 'vitest'
import { countAlerts } from '../support/failure/alerts.ts'
import { failOver } from '../support/failure/fail-over.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { startStack } from '../support/failure/stack.ts'
import { forFile } from '../support/opened.ts'
import { startCluster } from '../support/servers/redis-cluster.ts'

const cluster = await forFile(startCluster({ replicas: 1 }))
const stack = await forFile(startStack({ environment: { WEIR_REDIS_URL: cluster.urlOfAll } }))

const kills = 4

/** The slot of the deliveries' queue, and one that claims and limits have. */
const slots = ['{weir-deliveries}', '{quota-7}'].map(keySlot)

it('a Cluster under ingress and alerting, whose masters are killed: every decision is counted once, and every alert is out once', async () => {
  const { row, load } = await playScenario(stack, {
    fault: `a Redis Cluster loses a master, ${kills} times`,
    perSecond: 500,
    async strike({ load, random }) {
      for (let kill = 0; kill < kills; kill += 1) {
        const slot = slots[kill % slots.length] ?? 0
        await load.forMs(random.integer(1_000, 4_000))
        await failOver(cluster, slot)
      }
    },
  })
  expect(row).toEqual(exactly(row))
  const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
  process.stdout.write(`  alerts due ${due.length}, raised ${raised.length}, delivered ${delivered.length}\n`)
  expect(due.length).toBeGreaterThan(0)
  expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
})
