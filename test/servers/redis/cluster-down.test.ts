import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openTopology, untilDecides } from '../../support/open-topology.ts'
import { forFile } from '../../support/opened.ts'
import { startFamily } from '../../support/servers/redis-process.ts'

const deadlineMs = 500
const recoveryMs = { timeout: 10_000, interval: 20 }
const request = buildLimitRequest({ limits: [buildLimit({ onUnavailable: 'allow' })] })

const family = await forFile(startFamily('states'))

async function open(lines: (port: number) => readonly string[]) {
  const [port = 0, busPort = 0] = await freePorts(2)
  const server = await family.start(port, [`port ${port}`, 'bind 127.0.0.1', ...lines(busPort)])
  const redis = new Redis({ port, host: '127.0.0.1', protocol: 2 })
  redis.on('error', () => undefined)
  onTestFinished(() => redis.disconnect())
  return { port, server, redis }
}

test('a Cluster that is down is named CLUSTERDOWN, charges nothing, and is used again when it is up', async () => {
  const { port, redis } = await open((busPort) => ['cluster-enabled yes', `cluster-port ${busPort}`])
  await redis.cluster('ADDSLOTSRANGE', 0, 16_383)
  const store = await openTopology(`redis+cluster://127.0.0.1:${port}`, deadlineMs)
  await redis.cluster('DELSLOTSRANGE', 0, 0)
  await vi.waitFor(async () => {
    expect(await store.decide(request)).toMatchObject({ reason: 'unavailable', charged: 'no' })
    expect(store.counters.scriptErrors).toHaveProperty('CLUSTERDOWN')
  }, recoveryMs)
  expect((await store.checkHealth()).problem).toContain('CLUSTERDOWN')
  await redis.cluster('ADDSLOTSRANGE', 0, 0)
  await untilDecides(store)
})

test('a Redis that asks for a password that was not given is named NOAUTH', async () => {
  const { port, redis } = await open(() => [])
  const errors: string[] = []
  const onError = ({ message }: Error) => void errors.push(message)
  const store = await openTopology(`redis://127.0.0.1:${port}`, deadlineMs, { onError })
  await redis.config('SET', 'requirepass', 'new')
  await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await vi.waitFor(async () => expect((await store.checkHealth()).problem).toBeDefined(), recoveryMs)
  await vi.waitFor(() => expect(errors).toContainEqual(expect.stringContaining('NOAUTH')), recoveryMs)
  expect(await store.decide(request)).toMatchObject({ reason: 'unavailable', charged: 'no' })
  await redis.config('SET', 'requirepass', '')
  await untilDecides(store)
})

test('a Redis that reads its data is not asked until it has, and then decides', async () => {
  const { port, server, redis } = await open(() => [
    'appendonly yes',
    'key-load-delay 50',
    'loading-process-events-interval-bytes 1024',
  ])
  const store = await openTopology(`redis://127.0.0.1:${port}`, deadlineMs)
  await redis.config('SET', 'key-load-delay', '0')
  await redis.eval("for at = 1, 20000 do redis.call('SET', 'loaded:' .. at, 1) end", 0)
  await server.kill()
  await server.restart()
  const seen = new Set<string>()
  await vi.waitFor(async () => {
    const decision = await store.decide(request)
    seen.add(`${decision.reason} ${decision.charged}`)
    expect(decision.reason).toBe('ok')
  }, recoveryMs)
  expect([...seen]).toEqual(['unavailable no', 'ok yes'])
})
