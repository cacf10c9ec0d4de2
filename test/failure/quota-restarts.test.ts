import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keySlot } from '@weir/redis/key-slot.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, it } from 'vitest'
import { loseData } from '../support/failure/lost-data.ts'
import { onAll, QuotaSequence, sequencesPolicy } from '../support/failure/quota-sequences.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { callWeir } from '../support/failure/stack-command.ts'
import { untilRestored } from '../support/failure/until-restored.ts'
import { readMetric } from '../support/read-metric.ts'
import { createSeededRandom, type SeededRandom } from '../support/seeded-random.ts'
import { type ClusterSetup, startCluster } from '../support/servers/redis-cluster.ts'
import { until } from '../support/until.ts'

/** A month's first hour ends no period; 30 restarts take some ten minutes. */
const [subjects, restarts, failovers] = [1_000, 30, 5]
const names = Array.from({ length: subjects }, (_, at) => `sequence-${at}`)
/** Restoring goes on for half a minute after a loss. */
const equalDeadlineMs = 60_000

const upstream = createServer(
  (request, response) => void request.resume().on('end', () => response.writeHead(503).end()),
)
upstream.listen(0, '127.0.0.1')
await once(upstream, 'listening')
afterAll(() => void upstream.close())

async function open(environment: Readonly<Record<string, string>> = {}) {
  const policy = sequencesPolicy(names, `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`)
  // On a busy machine Redis answers late, and this is about counts: what it does not decide is not in the model.
  const patient = { WEIR_DECISION_DEADLINE_MS: '5000', ...environment }
  const stack = await startStack({ policy, oneOfEach: true, environment: patient })
  await untilRestored(stack)
  const at = (port: number) => `http://127.0.0.1:${port}`
  const { api, ingress, console } = stack.ports
  const doors = { api: at(api), ingress: at(ingress), console: at(console), token: stack.secrets.adminToken }
  return { stack, policy, all: names.map((name) => new QuotaSequence(name, doors)) }
}

/** Does up to two things to each subject. */
const playRound = (all: readonly QuotaSequence[], random: SeededRandom) =>
  onAll(all, async (one) => {
    for (let steps = random.integer(0, 2); steps > 0; steps -= 1) await one.step(random)
  })

/** Which counts differ from the model's, as text. */
async function differences(all: readonly QuotaSequence[]): Promise<readonly string[]> {
  const wrong: string[] = []
  await onAll(all, async (one) => {
    const used = await one.peek().catch(() => Number.NaN)
    if (used !== one.used) wrong.push(`${one.subject}: ${used} instead of ${one.used}`)
  })
  return wrong
}

async function expectEqual(all: readonly QuotaSequence[], what: string): Promise<void> {
  let wrong: readonly string[] = []
  const isEqual = async () => {
    wrong = await differences(all)
    return wrong.length === 0
  }
  await waitUntil(isEqual, { deadlineMs: equalDeadlineMs, everyMs: 1_000 })
  expect([what, wrong]).toEqual([what, []])
}

const metricOf = (stack: Stack, name: string) => readMetric(stack.opsAddress('console'), name)
const lossesOf = (stack: Stack) => metricOf(stack, 'weir_redis_losses_total')

/**
 * Waits for the first two looks after a loss. The first raises a count too high where a correction is not metered yet;
 * only one that no request changes before the second is lowered again (docs/decisions/0008).
 */
async function untilLookedAtTwice(stack: Stack, losses: number): Promise<void> {
  const isNoticed = async () => (await lossesOf(stack)) > losses
  await until(isNoticed, 30_000)
  const looks = await metricOf(stack, 'weir_quota_restores_total')
  const isLookedAt = async () => (await metricOf(stack, 'weir_quota_restores_total')) >= looks + 2
  await until(isLookedAt, equalDeadlineMs)
}

/** After the last pass of a restore: counts as the model has them, and a silent audit. */
async function expectSettled({ stack, policy, all }: Awaited<ReturnType<typeof open>>): Promise<void> {
  await untilRestored(stack)
  await expectEqual(all, 'at the end')
  const file = join(tmpdir(), `sequences-${process.pid}.yaml`)
  await writeFile(file, policy)
  const { code, stdout } = await callWeir(stack, ['audit', '--policy', file, '--json'])
  const { findings, above, compared } = JSON.parse(stdout)
  const unrefunded = all.reduce((sum, one) => sum + one.unrefunded, 0)
  const found = `${findings.length} findings, above ${JSON.stringify(above)}`
  process.stdout.write(`  audit: ${found}, ${compared.counts} counts; ${unrefunded} refunds not taken by Redis\n`)
  expect([code, findings]).toEqual([0, []])
  if (unrefunded === 0) expect(above.units).toBe(all.reduce((sum, one) => sum + one.unrecorded, 0))
}

it('charges, refunds, settlements, resets and lifted blocks in any order: after each restart of Redis its counts are the model’s', async () => {
  const opened = await open()
  const { stack, all } = opened
  const random = createSeededRandom()
  try {
    for (let restart = 1; restart <= restarts; restart += 1) {
      await playRound(all, random)
      const before = await lossesOf(stack)
      // Each third restart is one without its data.
      const isEmptied = restart % 3 === 0
      if (isEmptied) {
        await loseData(stack, 'redis')
        for (const one of all) one.lose()
        await stack.release('redis')
      } else {
        const pid = stack.pid('redis')
        stack.signal('redis', 'SIGKILL')
        await stack.backAfter('redis', pid)
      }
      await untilLookedAtTwice(stack, before)
      await expectEqual(all, `seed ${random.seed}, restart ${restart}${isEmptied ? ' without data' : ''}`)
    }
    await expectSettled(opened)
  } finally {
    await stack.close()
  }
}, 3_600_000)

it('the same after failovers of a Redis Cluster', async () => {
  const cluster: ClusterSetup = await startCluster({ replicas: 1 })
  try {
    const opened = await open({ WEIR_REDIS_URL: cluster.urlOfAll })
    const { stack, all } = opened
    const random = createSeededRandom()
    try {
      for (let failover = 1; failover <= failovers; failover += 1) {
        await playRound(all, random)
        const slot = keySlot(`{sequence-${failover}}`)
        const master = await cluster.holderOf(slot)
        // A replica that lacks the last writes would take them with it: this is about what the console makes of one.
        await master.redis.wait(1, 5_000)
        const before = await lossesOf(stack)
        await master.kill()
        const isReplaced = async () => (await cluster.holderOf(slot)).id !== master.id
        await until(isReplaced, 30_000)
        await master.restart()
        const follows = async () => (await master.redis.info('replication').catch(() => '')).includes('link_status:up')
        await until(follows, 30_000)
        await untilLookedAtTwice(stack, before)
        await expectEqual(all, `seed ${random.seed}, failover ${failover}`)
      }
      await expectSettled(opened)
    } finally {
      await stack.close()
    }
  } finally {
    await cluster.close()
  }
}, 1_800_000)
