import type { ManualBlock } from '@weir/policy/policy.ts'
import { expect, it } from 'vitest'
import { ManualBlocks } from './manual-blocks.ts'

const blocksOf = (...some: Partial<ManualBlock>[]) =>
  new ManualBlocks(
    new Map(some.map((one, at) => [`b${at}`, { name: `b${at}`, isExempt: false, untilMs: 100, ...one }])),
  )
const ask = (ip: string, subject = 'acme', keyId = 'k1') => ({ subject: { id: subject }, keyId, ip })
const name = (blocks: ManualBlocks, asking: ReturnType<typeof ask>, nowMs = 0) => blocks.of(asking, nowMs)?.name

it.each([
  ['192.0.2.7/32', '192.0.2.7', true],
  ['192.0.2.7/32', '192.0.2.8', false],
  ['198.51.100.0/24', '198.51.100.255', true],
  ['198.51.100.0/24', '198.51.101.0', false],
  ['255.255.255.254/31', '255.255.255.255', true],
  ['0.0.0.0/0', '203.0.113.9', true],
  ['0.0.0.0/0', '2001:db8:1:2::/64', false],
  ['2001:db8::/32', '2001:db8:ffff:1::/64', true],
  ['2001:db8::/32', '2001:db9::/64', false],
  ['2001:db8:1:200::/56', '2001:db8:1:2ff::/64', true],
  ['2001:db8:1:200::/56', '2001:db8:1:300::/64', false],
  ['2001:db8:1:2::/64', '2001:db8:1:2::/64', true],
  ['::/0', '2001:db8::/64', true],
  ['192.0.2.0/24', '', false],
])('a block of %s and a caller at %s: %s', (network, ip, isBlocked) => {
  expect(name(blocksOf({ network }), ask(ip)) !== undefined).toBe(isBlocked)
})

it('of subjects and keys those named are blocked, until the end, and by the block that ends last', () => {
  const blocks = blocksOf({ subject: 'acme', untilMs: 50 }, { keyId: 'k1', untilMs: 80 }, { subject: 'bolt' })
  expect([0, 49, 50, 79, 80].map((nowMs) => name(blocks, ask(''), nowMs))).toEqual(['b1', 'b1', 'b1', 'b1', undefined])
  expect([
    name(blocks, ask('', 'bolt', 'k2')),
    name(blocks, ask('', 'acme', 'k2')),
    name(blocks, ask('', 'other', '')),
  ]).toEqual(['b2', 'b0', undefined])
})

it('an exempt address is not blocked by its network, but as a subject', () => {
  const blocks = blocksOf(
    { network: '198.51.100.0/24' },
    { network: '198.51.100.7/32', isExempt: true },
    { subject: 'bolt' },
  )
  expect(name(blocks, ask('198.51.100.8'))).toBe('b0')
  expect(name(blocks, ask('198.51.100.7'))).toBe('b1')
  expect(name(blocks, ask('198.51.100.7', 'bolt'))).toBe('b2')
})
