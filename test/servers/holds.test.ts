import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { afterAll, expect, test } from 'vitest'
import { openIngressStack } from '../support/ingress-stack.ts'
import { forFile } from '../support/opened.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { readDecisions } from '../support/servers/read-decisions.ts'
import { until } from '../support/until.ts'

const policy = {
  version: 1,
  limits: {
    'tokens-month': { algorithm: 'fixed_window', size: 1_000, period: 'month', unit: 'tokens' },
    'tokens-minute': { algorithm: 'token_bucket', size: 100_000, window: '1h', unit: 'tokens' },
    'calls-month': { algorithm: 'fixed_window', size: 100_000, period: 'month', unit: 'requests' },
    units: { algorithm: 'fixed_window', size: 1_000_000, window: '7d' },
    'in-flight': { algorithm: 'concurrency', size: 2 },
    'some-month': { algorithm: 'fixed_window', size: 1_000, period: 'month', unit: 'tokens', hold: 100 },
    'none-week': { algorithm: 'fixed_window', size: 1_000, window: '7d', unit: 'tokens', hold: 'none' },
  },
  plans: {
    ai: { limits: ['tokens-month', 'tokens-minute', 'calls-month', 'units'] },
    slots: { limits: ['in-flight'] },
    less: { limits: ['some-month', 'none-week'] },
  },
  subjects: {
    ...Object.fromEntries(
      ['ann', 'ben', 'walk'].map((name) => [name, { plan: 'ai', keys: [{ sha256: sha256(name) }] }]),
    ),
    slots: { plan: 'slots' },
    less: { plan: 'less' },
  },
  tokens: { gate: { sha256: sha256('gate'), scopes: ['check'] } },
}

const stack = await forFile(openIngressStack(policy))
const processes = [await stack.start(), await stack.start()] as const
const redis = connectRedis(stack.redis.address, { role: 'limiter', onError: () => {} })
afterAll(() => redis.disconnect())

interface Limit {
  readonly name: string
  readonly used: number
  readonly remaining: number
}

interface Answer {
  readonly status: number
  readonly id: string
  readonly allowed: boolean
  readonly denied_by: string
  readonly retry_after_ms: number
  readonly open_ms: number
  readonly cost: number
  readonly correction: string | null
  readonly units?: Readonly<Record<string, number>>
  readonly limits: readonly Limit[]
}

async function post(path: string, body: object, key = 'gate', process = processes[0]): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const answer = await fetch(`${process.api}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { ...((await answer.json()) as Answer), status: answer.status }
}
const month = ({ limits }: Answer) => {
  const { used, remaining } = limits.find(({ name }) => name === 'tokens-month') ?? {}
  return [used, remaining]
}
const hold = (subject: string, tokens: number, process = processes[0]) =>
  post('check', { subject, units: { tokens }, settle: '15m' }, 'gate', process)
const peek = (subject: string, tokens = 0) => post('check', { subject, units: { tokens }, peek: true })

test('What is held is not used: settling replaces it, once, whichever process is asked', async () => {
  const held = await hold('ann', 400)
  expect(month(held)).toEqual([0, 600])
  const alone = await hold('ann', 700)
  expect([alone.allowed, alone.denied_by, alone.retry_after_ms <= 2_000]).toEqual([false, 'tokens-month', true])
  const settled = await post('settle', { subject: 'ann', id: held.id, units: { tokens: 120 } }, 'gate', processes[1])
  expect([settled.status, settled.units, settled.cost, month(settled)]).toEqual([200, { tokens: 120 }, 1, [120, 880]])
  const again = await post('settle', { subject: 'ann', id: held.id, units: { tokens: 120 } })
  expect([again.status, again.correction]).toEqual([200, settled.correction])
  const other = await post('settle', { subject: 'ann', id: held.id, units: { tokens: 121 } })
  expect([other.status, month(await peek('ann'))]).toEqual([409, [120, 880]])

  const more = await hold('ann', 100)
  const dearer = await post('settle', { subject: 'ann', id: more.id, cost: 7, units: { tokens: 150 } })
  expect([dearer.status, dearer.cost, month(dearer)]).toEqual([200, 7, [270, 730]])
  expect(month(await peek('ann'))).toEqual([270, 730])
  const unused = await hold('ann', 500)
  expect((await post('release', { subject: 'ann', id: unused.id })).units).toEqual({ tokens: 0 })
  const stays = await hold('ann', 30)
  expect((await post('settle', { subject: 'ann', id: stays.id, cost: 1 })).units).toEqual({ tokens: 30 })
  await post('check', { subject: 'ann', units: { tokens: 5 } })
  expect(month(await peek('ann'))).toEqual([305, 695])
  const tooMuch = await post('check', { subject: 'ann', units: { tokens: 1_001 } })
  expect([tooMuch.allowed, tooMuch.denied_by]).toEqual([false, 'tokens-month'])

  const records = await readDecisions(
    stack.kafka,
    ({ subject }) => subject === 'ann',
    (all) => all.some(({ units }) => units?.tokens === 1_001),
  )
  const of = (id: string | null) => records.find((one) => one.id === id)
  expect(of(held.id)).toMatchObject({ held: { tokens: 400 }, charged: 'yes', cost: 1 })
  expect(of(settled.correction)).toMatchObject({
    corrects: held.id,
    adjustment: 0,
    held: { tokens: 400 },
    units: { tokens: 120 },
    basis: 'reported',
    ts: of(held.id)?.ts,
  })
  expect(of(alone.id)).toMatchObject({ outcome: 'deny', units: { tokens: 700 } })
  expect(records.filter(({ corrects }) => corrects === held.id)).toHaveLength(1)
})

test("A subject's own credential settles to no more than it holds, and asks for no more than its limits have", async () => {
  const held = await post('check', { units: { tokens: 50 }, settle: '1m' }, 'ben')
  const more = await post('settle', { id: held.id, units: { tokens: 51 } }, 'ben')
  expect(more.status).toBe(403)
  expect((await post('settle', { id: held.id, units: { tokens: 0 } }, 'ben')).status).toBe(200)
  expect((await post('check', { units: { tokens: 1_001 } }, 'ben')).status).toBe(403)
  const wrong: readonly object[] = [{ Tokens: 1 }, { constructor: 1 }, { cost: 1 }, { tokens: -1 }, { tokens: 0.5 }, {}]
  for (const units of wrong) expect((await post('check', { subject: 'ben', units })).status, `${units}`).toBe(400)
})

test('A slot of a check lasts as long as it is renewed, and is free once it is released', async () => {
  const take = (settle: string) => post('check', { subject: 'slots', settle })
  const [short, long] = [await take('2s'), await take('1m')]
  expect((await take('1m')).denied_by).toBe('in-flight')
  const startedMs = performance.now()
  let openMs = 0
  await until(async () => {
    openMs = (await post('renew', { subject: 'slots', id: short.id })).open_ms
    return performance.now() - startedMs > 4_000
  }, 10_000)
  expect(openMs).toBeGreaterThan(1_900)
  expect((await take('1m')).denied_by).toBe('in-flight')
  expect((await post('release', { subject: 'slots', id: short.id })).status).toBe(200)
  const next = await take('1m')
  expect([next.allowed, (await take('1m')).allowed]).toEqual([true, false])
  for (const { id } of [long, next]) await post('release', { subject: 'slots', id })
  const free = await post('check', { subject: 'slots', peek: true })
  expect(free.limits).toMatchObject([{ used: 0, remaining: 2 }])
  expect((await post('renew', { subject: 'slots', id: long.id })).status).toBe(404)
})

test('Over random holds by two processes no count is above its size, and in the end each is what was settled and what is open', async () => {
  const random = createSeededRandom()
  const used = { settled: 0, open: 0 }
  const work = async (worker: number) => {
    for (let round = 0; round < 60; round += 1) {
      const process = processes[(worker + round) % 2] ?? processes[0]
      const tokens = random.integer(0, 120)
      const held = await hold('walk', tokens, process)
      const [shown = 0, left = 0] = month(held)
      expect(shown + left).toBeLessThanOrEqual(1_000)
      if (!held.allowed) continue
      const actual = random.integer(0, tokens)
      const end = random.pick(['settle', 'settle', 'release', 'release', 'release', 'leave'])
      if (end === 'leave' && used.open < 200) used.open += tokens
      else if (end === 'settle' && used.settled < 500) {
        used.settled += actual
        const body = { subject: 'walk', id: held.id, units: { tokens: actual } }
        await Promise.all([post('settle', body), post('settle', body, 'gate', processes[1])])
      } else await post('release', { subject: 'walk', id: held.id })
    }
  }
  await Promise.all([0, 1, 2, 3].map(work))
  expect(month(await peek('walk'))).toEqual([used.settled, 1_000 - used.settled - used.open])
  const bytes = await redis.getBuffer('weir:1:{walk}:tokens-month')
  expect(bytes?.readDoubleBE(9)).toBe(used.settled + used.open)
})

test('A limit that holds less than a request may use admits more of them, and settles each to what it used', async () => {
  const standing = ({ limits }: Answer) => limits.map(({ used, remaining }) => [used, remaining])
  const three = [await hold('less', 400), await hold('less', 400), await hold('less', 60)]
  expect(standing(await peek('less'))).toEqual([
    [0, 1_000 - 100 - 100 - 60],
    [3, 997],
  ])
  for (const { id } of three) await post('settle', { subject: 'less', id, units: { tokens: 400 } })
  // Above the size by what was open, and nothing more: the next one is refused.
  expect(standing(await peek('less'))).toEqual([
    [1_200, 0],
    [1_200, 0],
  ])
  expect((await hold('less', 1)).allowed).toBe(false)
})
