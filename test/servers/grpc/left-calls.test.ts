import { status } from '@grpc/grpc-js'
import type { SlotCharge, SlotStore } from '@weir/core/limits/limit-store.ts'
import { createMemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import { expect, test } from 'vitest'
import { createRlsClient, type Descriptor, type RlsRequest } from '../../support/envoy-ratelimit/rls-client.ts'
import { openWeirApps } from '../../support/gateways/weir-apps.ts'
import { forTest } from '../../support/opened.ts'
import { until } from '../../support/until.ts'

const policy = `
version: 1
limits:
  in-flight: { algorithm: concurrency, size: 2, expires: 5m, by: ["attribute:user"] }
  tokens: { algorithm: fixed_window, size: 10, window: 7d, by: ["attribute:user"] }
routes:
  - { match: "DESCRIPTOR /llm/user/:user", limits: [in-flight, tokens], beyond: charge }
`
const of = (value: number): RlsRequest => ({
  domain: 'llm',
  descriptors: [{ entries: [{ key: 'user', value: 'ann' }], hits_addend: { value } }],
})

interface End {
  readonly signal?: AbortSignal
  readonly deadlineMs?: number
}

/** A call takes slots and tokens, and ends while its answer waits for a slow disk. Returns what is given back. */
async function givenBackAfter(end: End, leave?: () => void) {
  const log = createMemoryDecisionLog()
  const disk = Promise.withResolvers<boolean>()
  log.writtenInTime = () => disk.promise
  const released: string[] = []
  const release: SlotStore['release'] = async ({ request: { limits, cost } }) =>
    released.push(...limits.map(({ name }) => `${name} ${cost}`))
  const weir = await forTest(openWeirApps(policy, log, { renew: async () => 0, release }))
  const client = await forTest(createRlsClient(weir.grpc))
  const taken = client.shouldRateLimit(of(2), {}, end).catch(({ code }: { readonly code: number }) => code)
  await until(() => log.records.length === 1)
  leave?.()
  const code = await taken
  // A later call on the same connection: by its answer, the end of the one before has arrived.
  await client.shouldRateLimit(of(0))
  disk.resolve(true)
  await client.shouldRateLimit(of(0))
  return { code, released }
}

test('Slots of a call that is given up before its answer are given back, because Envoy does not: its client hung up', async () => {
  const client = new AbortController()
  const ended = await givenBackAfter({ signal: client.signal }, () => client.abort())
  expect(ended).toEqual({ code: status.CANCELLED, released: ['in-flight 2'] })
})

test('Slots of a call that took longer than the gateway waits are not, because Envoy gives them back', async () => {
  expect(await givenBackAfter({ deadlineMs: 200 })).toEqual({ code: status.DEADLINE_EXCEEDED, released: [] })
})

test('Slots of a call that is refused without its limits are counted as refused, because Envoy gives them back too', async () => {
  const [since, until] = ['2026-01-01T00:00:00Z', new Date(Date.now() + 86_400_000).toISOString()]
  const blocks = `blocks: { office: { ip: 192.0.2.0/24, since: "${since}", until: "${until}", by: test } }\n`
  const changed: string[] = []
  const change = (how: string) => async (slot: SlotCharge) =>
    changed.push(...slot.request.limits.map(({ name }) => `${how} ${name} ${slot.atUs}`))
  const slots = { renew: change('renew'), release: change('release') }
  const byAddress = policy.replace('/:user"', '/:user/remote_address/:address"')
  const weir = await forTest(openWeirApps(byAddress + blocks, createMemoryDecisionLog(), slots))
  const client = await forTest(createRlsClient(weir.grpc))
  const [ann] = of(1).descriptors
  const entries = [...(ann?.entries ?? []), { key: 'remote_address', value: '192.0.2.1' }]
  const from = (request: Partial<Descriptor>) =>
    client.shouldRateLimit({ domain: 'llm', descriptors: [{ entries, hits_addend: { value: 1 }, ...request }] })
  expect((await from({})).overall_code).toBe('OVER_LIMIT')
  await from({ is_negative_hits: true })
  expect(changed).toEqual(['renew in-flight 0', 'release in-flight 0', 'release tokens 0'])
})
