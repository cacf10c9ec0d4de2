import { describe, expect, it } from 'vitest'
import { addressScope } from './address-scope.ts'

describe('addressScope', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['::1', '::/64'],
    ['', ''],
    ['example.com', ''],
  ])('takes %s as %s', (address, scope) => {
    expect(addressScope(address)).toBe(scope)
  })
})
