import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { expect, test, vi } from 'vitest'
import { openTopology } from '../../support/open-topology.ts'
import { forTest } from '../../support/opened.ts'
import { type Answer, runLoad } from '../../support/run-load.ts'
import { startSentinels } from '../../support/servers/redis-sentinel.ts'

const deadlineMs = 100
/** Garbage collection and two busy cores. */
const slackMs = 150
const size = 20_000
const clients = 16

const isAdmitted = ({ decision }: Answer) => decision.allowed && decision.reason === 'ok'
const usedOf = ({ decision }: Answer) => decision.limits[0]?.used ?? Number.POSITIVE_INFINITY

test.each(['SIGKILL', 'SIGSTOP'] as const)(
  'a failover under load (%s): nobody waits beyond the deadline, only writes that Redis lost are admitted twice, and service resumes',
  async (signal) => {
    const setup = await forTest(startSentinels())
    const store = await openTopology(setup.url, deadlineMs)
    const limit = buildLimit({ size, span: { kind: 'window', ms: 86_400_000 }, onUnavailable: 'deny' })
    const load = runLoad(store, clients, buildLimitRequest({ limits: [limit] }))

    await vi.waitFor(() => expect(load.answers.filter(isAdmitted).length).toBeGreaterThan(2_000), { timeout: 10_000 })
    setup.servers[0]?.signal(signal)
    const goneFrom = await vi.waitFor(() => {
      const found = load.answers.findIndex(({ decision }) => decision.reason === 'unavailable')
      expect(found).toBeGreaterThan(0)
      return found
    })
    const until = { timeout: 12_000, interval: 10 }
    await vi.waitFor(() => expect(load.answers.slice(goneFrom).filter(isAdmitted).length).toBeGreaterThan(500), until)
    await vi.waitFor(() => expect(load.answers.at(-1)?.decision.reason).toBe('limit'), until)
    await load.stop()

    const before = load.answers.slice(0, goneFrom).filter(isAdmitted)
    const after = load.answers.slice(goneFrom).filter(isAdmitted)
    const kept = Math.min(...after.map(usedOf)) - 1
    const lost = Math.max(0, before.length - kept)
    process.stdout.write(
      `failover by ${signal}: ${before.length} admitted before, ${kept} of them kept, ${lost} lost by Redis\n`,
    )
    expect(before.length + after.length).toBeLessThanOrEqual(size + lost)
    expect(lost).toBeLessThan(1_000)
    expect(load.answers.filter(({ waitedMs }) => waitedMs > deadlineMs + slackMs)).toEqual([])
    expect(store.counters.breakerOpened).toBeGreaterThan(0)
  },
)
