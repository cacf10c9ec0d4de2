import { WeirError } from '@weir/core/errors.ts'
import { expect, test } from 'vitest'
import { nowMs, openWithPolicy } from '../testing/open-console.ts'
import type { LimitSource } from './limit-source.ts'

const row = (n: number) => ({
  name: 'per-ip',
  subject: '',
  by: { ip: `10.0.${n >> 8}.${n & 255}` },
  decision: 'd',
  refusals: 1,
  // Some were set in the same millisecond.
  since_ms: nowMs - Math.floor(n / 3),
})
/** Has so many blocks in ClickHouse, and finds all of them in Redis that it is asked for. */
const blocksOf = (count: number, more: Partial<LimitSource['blocks']> = {}): LimitSource['blocks'] => ({
  read: async (_reach, { rowsMax }) => Array.from({ length: Math.min(count, rowsMax) }, (_, n) => row(n)),
  find: async (scopes) => ({
    blocks: scopes.map((scope) => ({ scope, id: `id-${scope.by.ip}`, untilMs: nowMs + 1_000 })),
    isWhole: true,
  }),
  lift: async () => ({ lifted: true, forgotten: false, used_up: false }),
  keyOf: async () => 'weir:1:{ip%3A10%2E0%2E0%2E1}:per-ip',
  ...more,
})

async function open(blocks: LimitSource['blocks'] | undefined) {
  const { ask } = await openWithPolicy(blocks === undefined ? { limits: undefined } : { blocks })
  return ask
}

test('pages joined have every block once, the newest first, and a cursor is of its question', async () => {
  const ask = await open(blocksOf(2_500))
  const items: { ip: string; since: string }[] = []
  let after = ''
  for (let pages = 1; ; pages += 1) {
    const { items: some, next, complete } = (await ask(`/v1/blocks${after}`)).json()
    expect([complete, some.length <= 1_000]).toEqual([true, true])
    items.push(...some)
    if (next === null) {
      expect(pages).toBe(3)
      break
    }
    after = `?after=${next}`
  }
  expect(new Set(items.map(({ ip }) => ip)).size).toBe(2_500)
  expect(items.map(({ since }) => since)).toEqual(
    items
      .map(({ since }) => since)
      .toSorted()
      .toReversed(),
  )
  const other = await ask(`/v1/blocks${after}&ip=10.0.0.1`)
  expect([other.statusCode, other.json().type]).toEqual([400, 'urn:weir:problem:cursor-invalid'])
})

test('an answer has 10,000 blocks at most, and says that there may be more', async () => {
  const ask = await open(blocksOf(10_500))
  expect((await ask('/v1/blocks')).json().complete).toBe(false)
  const text = await ask('/v1/blocks?format=text')
  expect([text.headers['weir-complete'], text.body.split('\n').length]).toEqual(['false', 10_001])
  const searched = blocksOf(1, { find: async () => ({ blocks: [], isWhole: false }) })
  expect((await (await open(searched))('/v1/blocks')).json()).toMatchObject({ complete: false, items: [] })
})

test('a limit that blocks no caller is not asked for', async () => {
  const asked: (readonly string[])[] = []
  const read: LimitSource['blocks']['read'] = async (_reach, { limits }) => {
    asked.push(limits)
    return []
  }
  const ask = await open(blocksOf(0, { read }))
  await ask('/v1/blocks')
  expect((await ask('/v1/blocks?limit=minute')).json()).toEqual({ complete: true, items: [], next: null })
  expect(asked).toEqual([['per-ip']])
})

test('servers that are down are named, and none of their words is shown', async () => {
  const down = async () => await Promise.reject(new Error('password'))
  const redis = async () => await Promise.reject(new WeirError('REDIS_UNAVAILABLE', 'password'))
  for (const [blocks, path, type] of [
    [blocksOf(1, { read: down }), '/v1/blocks', 'blocks-unavailable'],
    [blocksOf(1, { find: redis }), '/v1/blocks?format=text', 'blocks-unavailable'],
    [undefined, '/v1/blocks', 'limits-unavailable'],
    [blocksOf(1, { keyOf: redis }), 'POST /v1/blocks/x/lift', 'limits-unavailable'],
    [blocksOf(1, { lift: redis }), 'POST /v1/blocks/x/lift', 'limits-unavailable'],
    [undefined, 'POST /v1/blocks/x/lift', 'limits-unavailable'],
  ] as const) {
    const answer = await (await open(blocks))(path)
    expect([path, answer.statusCode, answer.json().type]).toEqual([path, 503, `urn:weir:problem:${type}`])
    expect([answer.headers['retry-after'], answer.body.includes('password')]).toEqual(['5', false])
  }
})
