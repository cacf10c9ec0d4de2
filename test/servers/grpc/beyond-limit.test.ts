import { expect, test } from 'vitest'
import { createRlsClient, type Descriptor } from '../../support/envoy-ratelimit/rls-client.ts'
import { openIngressStack } from '../../support/ingress-stack.ts'
import { forFile } from '../../support/opened.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'
import { readDecisions } from '../../support/servers/read-decisions.ts'

const size = 60
const policy = {
  version: 1,
  limits: {
    tokens: { algorithm: 'fixed_window', size, window: '7d', by: ['attribute:user'] },
    calls: { algorithm: 'fixed_window', size: 5, window: '7d', by: ['attribute:caller'] },
    'in-flight': { algorithm: 'concurrency', size: 3, expires: '5m', by: ['attribute:streamer'] },
  },
  routes: [
    { match: 'DESCRIPTOR /llm/user/:user', limits: ['tokens'], beyond: 'charge' },
    { match: 'DESCRIPTOR /llm/caller/:caller', limits: ['calls'] },
    { match: 'DESCRIPTOR /llm/streamer/:streamer', limits: ['in-flight'], beyond: 'charge' },
  ],
}

const stack = await forFile(openIngressStack(policy))
const weir = await stack.start()
const client = await forFile(createRlsClient(weir.grpc))

type Hits = number | undefined
const descriptor = (key: string, value: string, hits: Hits, isNegative = false): Descriptor => ({
  entries: [{ key, value }],
  ...(hits !== undefined && { hits_addend: { value: hits } }),
  ...(isNegative && { is_negative_hits: true }),
})
const send = async (...descriptors: readonly Descriptor[]) => {
  const { statuses, overall_code: code, raw_body: body } = await client.shouldRateLimit({ domain: 'llm', descriptors })
  return { code, codes: statuses.map((one) => one.code), left: statuses.map((one) => one.limit_remaining), body }
}

/** The rules of envoyproxy/ratelimit: what comes is counted, whether it fits or not; nothing falls below 0. */
const after = (count: number, hits: Hits, isNegative: boolean) =>
  isNegative ? Math.max(0, count - (hits ?? 1)) : count + (hits ?? 1)

test("after 10,000 random exchanges every count is what envoyproxy/ratelimit's rules make it, and every unit is in the records", async () => {
  const random = createSeededRandom()
  let recorded = 0
  const counts = Array.from({ length: 25 }, async (_, at) => {
    const user = `user-${at}`
    let count = 0
    for (let exchange = 0; exchange < 400; exchange += 1) {
      const look = await send(descriptor('user', user, 0))
      expect([look.code, look.left[0]]).toEqual([count < size ? 'OK' : 'OVER_LIMIT', Math.max(0, size - count)])
      const hits = random.oneIn(10) ? undefined : random.integer(0, 9)
      const isNegative = random.oneIn(2)
      const before = count
      count = after(count, hits, isNegative)
      const end = await send(descriptor('user', user, hits, isNegative))
      // 0 hits look for one unit.
      const fits = hits === 0 ? count < size : count <= size
      expect(end.code).toBe(isNegative || fits ? 'OK' : 'OVER_LIMIT')
      if (!isNegative) recorded += hits ?? 1
      else if (before > 0) recorded -= hits ?? 1
    }
    // What is above the size is seen once as much is given back.
    await send(descriptor('user', user, 100_000, true))
    expect((await send(descriptor('user', user, 0))).left).toEqual([size])
    if (count > 0) recorded -= 100_000
  })
  await Promise.all(counts)
  const units = (all: readonly { readonly cost: number; readonly count: number; readonly adjustment?: number }[]) =>
    all.reduce((sum, { cost, count, adjustment = 0 }) => sum + cost * count + adjustment, 0)
  const records = await readDecisions(
    stack.kafka,
    ({ route }) => route.includes('/user/'),
    (all) => units(all) === recorded,
  )
  expect(units(records)).toBe(recorded)
}, 120_000)

test('what was used beyond the limit is charged and refuses the next look; a refused call beside it is not', async () => {
  const mixed = await send(descriptor('caller', 'ann', 6), descriptor('user', 'ann', size + 20))
  expect([mixed.code, mixed.codes, mixed.left]).toEqual(['OVER_LIMIT', ['OVER_LIMIT', 'OVER_LIMIT'], [5, 0]])
  expect(JSON.parse(mixed.body.toString())).toMatchObject({ 'violated-policies': ['calls'] })
  const looked = await send(descriptor('caller', 'ann', 5), descriptor('user', 'ann', 0))
  expect([looked.code, looked.codes]).toEqual(['OVER_LIMIT', ['OK', 'OVER_LIMIT']])
  await send(descriptor('user', 'ann', 21, true))
  const freed = await send(descriptor('caller', 'ann', 5), descriptor('user', 'ann', 0))
  expect([freed.code, freed.left]).toEqual(['OK', [0, 1]])
  const records = await readDecisions(
    stack.kafka,
    ({ limits, corrects = '' }) => limits.some(({ name }) => name === 'tokens') && corrects === '',
    (all) => all.some(({ cost }) => cost === size + 20),
  )
  const over = records.filter(({ cost }) => cost === size + 20)
  expect(over).toMatchObject([{ outcome: 'allow', reason: 'limit', charged: 'yes', denied_by: 'tokens' }])
})

test('a slot that a gateway gives back is free, also where it gives back one that was refused', async () => {
  const take = () => send(descriptor('streamer', 'ann', undefined)).then(({ code }) => code)
  const giveBack = () => send(descriptor('streamer', 'ann', undefined, true)).then(({ code }) => code)
  expect(await Promise.all([take(), take(), take(), take(), take()])).toEqual([
    'OK',
    'OK',
    'OK',
    'OVER_LIMIT',
    'OVER_LIMIT',
  ])
  expect(await Promise.all([giveBack(), giveBack()])).toEqual(['OK', 'OK'])
  expect(await take()).toBe('OVER_LIMIT')
  expect([await giveBack(), await giveBack(), await take()]).toEqual(['OK', 'OK', 'OK'])
  for (let left = 0; left < 4; left += 1) await giveBack()
  expect(await send(descriptor('streamer', 'ann', 0))).toMatchObject({ code: 'OK', left: [3] })
})
