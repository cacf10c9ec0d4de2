import { once } from 'node:events'
import { request } from 'node:http'
import { freePorts } from '@weir/runtime/ports.ts'
import { expect, test } from 'vitest'
import { startCountingUpstream } from '../../support/counting-upstream.ts'
import { createRlsClient } from '../../support/envoy-ratelimit/rls-client.ts'
import { type RateLimit, streamDoneConfig } from '../../support/envoy-ratelimit/stream-done-config.ts'
import { startEnvoyFrom } from '../../support/gateways/envoy.ts'
import { openIngressStack } from '../../support/ingress-stack.ts'
import { forFile } from '../../support/opened.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'
import { until } from '../../support/until.ts'

const size = 3
const policy = {
  version: 1,
  limits: { 'in-flight': { algorithm: 'concurrency', size, expires: '5m', by: ['attribute:user'] } },
  routes: [{ match: 'DESCRIPTOR /streams/user/:user', limits: ['in-flight'], beyond: 'charge' }],
}
const actions = [{ request_headers: { header_name: 'x-weir-subject', descriptor_key: 'user' } }]
const limits: readonly RateLimit[] = [
  { actions, hits_addend: { number: 1 } },
  { actions, hits_addend: { number: 1, is_negative_hits: true }, apply_on_stream_done: true },
]

const api = await forFile(startCountingUpstream())
const stack = await forFile(openIngressStack(policy))
const weir = await stack.start()
const client = await forFile(createRlsClient(weir.grpc))
const [nobody = 0] = await freePorts(1)
const envoy = await forFile(
  startEnvoyFrom((port) =>
    streamDoneConfig({
      port,
      rls: Number(weir.grpc.split(':')[1]),
      api: Number(new URL(api.url).port),
      nobody,
      metadata: { before: {}, after: {} },
      routes: [
        { prefix: '/down', limits, cluster: 'nobody' },
        { prefix: '/', limits },
      ],
    }),
  ),
)

async function free(user: string) {
  const descriptors = [{ entries: [{ key: 'user', value: user }], hits_addend: { value: 0 } }]
  return (await client.shouldRateLimit({ domain: 'streams', descriptors })).statuses[0]?.limit_remaining
}

/** A request, and its status once the response has begun. `ms` may be "hold". */
async function begin(user: string, ms: string, path = '/') {
  const asked = request(envoy.url + path, { headers: { 'x-weir-subject': user, 'x-ms': ms }, agent: false })
  asked.on('error', () => undefined).end()
  const [response] = await once(asked, 'response')
  return { status: response.statusCode as number, asked, response }
}

test('Through Envoy a user has at most so many requests in flight as the limit says, and refusals take no slot', async () => {
  const held = await Promise.all([begin('ann', 'hold'), begin('ann', 'hold'), begin('ann', 'hold')])
  const refused = await Promise.all([begin('ann', '0'), begin('ann', '0')])
  expect([...held, ...refused].map(({ status }) => status)).toEqual([200, 200, 200, 429, 429])
  for (const { response } of refused) await once(response.resume(), 'end')
  // The two have taken slots as well, and Envoy gives these back: only then is one free.
  held[0]?.asked.destroy()
  await until(async () => (await free('ann')) === 1)
  expect((await begin('ann', '0')).status).toBe(200)
  api.endHeld()
  await until(async () => (await free('ann')) === size)
  expect((await begin('ann', '0', '/down')).status).toBe(503)
  await until(async () => (await free('ann')) === size)
})

test('After 600 requests that end, are refused or are left by their clients, every slot is free', async () => {
  const random = createSeededRandom()
  const statuses: number[] = []
  const oneAfterAnother = async (user: string) => {
    for (let sent = 0; sent < 20; sent += 1) {
      const { status, asked, response } = await begin(user, String(random.integer(0, 5)))
      statuses.push(status)
      if (random.oneIn(3)) asked.destroy()
      else await once(response.resume(), 'end')
    }
  }
  const users = ['ben', 'cleo', 'dan', 'eve', 'fay']
  // Six clients of each share three slots.
  await Promise.all(Array.from({ length: 6 }, () => users.map(oneAfterAnother)).flat())
  for (const user of users) await until(async () => (await free(user)) === size)
  expect([...new Set(statuses)].toSorted()).toEqual([200, 429])
  expect(statuses).toHaveLength(600)
})
