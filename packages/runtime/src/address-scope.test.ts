import ipaddr from 'ipaddr.js'
import { describe, expect, it } from 'vitest'
import { addressScope, networkScope, plainAddress } from './address-scope.ts'

describe('addressScope', () => {
  it.each([
    ['2001:db8:77:1ff:1::5', 56, '2001:db8:77:100::/56'],
    ['2001:db8:77:1ff::5', 63, '2001:db8:77:1fe::/63'],
    ['2001:db8:77:ff::5', 56, '2001:db8:77::/56'],
    ['2001:db8:77:1ff::5', 48, '2001:db8:77::/48'],
    ['2001:dbf:77:1ff::5', 32, '2001:dbf::/32'],
    ['2001:dbf:ff7f::', 40, '2001:dbf:ff00::/40'],
    ['::1', 56, '::/56'],
    ['203.0.113.7', 56, '203.0.113.7'],
    ['::ffff:203.0.113.7', 48, '203.0.113.7'],
  ])('of %s with a prefix of %i is %s', (address, prefix, scope) => {
    expect(addressScope(address, prefix)).toBe(scope)
    expect([scope, address].map((text) => networkScope(text, prefix))).toEqual([scope, scope])
  })

  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['64:ff9b::203.0.113.7', '203.0.113.7'],
    ['64:ff9b::cb00:7108', '203.0.113.8'],
    ['64:ff9b:1::203.0.113.7', '64:ff9b:1::/64'],
    ['::FFFF:cb00:7107', '203.0.113.7'],
    ['0:0:0:0:0:ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:0001:2::', '2001:db8:1:2::/64'],
    ['2001:db8::1:2:3', '2001:db8::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['0:0:0:5::', '0:0:0:5::/64'],
    ['::1', '::/64'],
    ['::203.0.113.7', '::/64'],
    ['', ''],
    ['example.com', ''],
    ['1::2::3', ''],
  ])('takes %s as %s', (address, scope) => {
    expect(addressScope(address, 64)).toBe(scope)
  })

  it('reads every form of an address as ipaddr.js does', () => {
    let state = 7
    const below = (bound: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
      return Math.floor((state / 2_147_483_648) * bound)
    }
    for (let n = 0; n < 2_000; n += 1) {
      const groups = Array.from({ length: 8 }, () => (below(3) === 0 ? below(65_536) : 0))
      const address = new ipaddr.IPv6(groups)
      const network = new ipaddr.IPv6(groups.map((group, at) => (at < 4 ? group : 0)))
      const padded = groups.map((group) => group.toString(16).padStart(4, '0')).join(':')
      for (const text of [address.toString(), address.toNormalizedString(), padded]) {
        expect(addressScope(text, 64)).toBe(`${network}/64`)
      }
    }
  })
})

describe('plainAddress', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['fe80::1%eth0', 'fe80::1'],
    ['2001:db8::1', '2001:db8::1'],
    ['203.0.113.07', ''],
    ['unknown', ''],
  ])('takes %s as %s', (address, plain) => {
    expect(plainAddress(address)).toBe(plain)
  })
})
