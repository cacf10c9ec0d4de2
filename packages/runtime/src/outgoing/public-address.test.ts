import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createPublicLookup, isPublicAddress } from './public-address.ts'

describe('isPublicAddress', () => {
  it.each(['8.8.8.8', '2606:4700:4700::1111', '::ffff:8.8.8.8'])('takes %s', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  it.each([
    '127.0.0.1',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '192.0.2.1',
    '198.18.0.1',
    '240.0.0.1',
    '::',
    '::1',
    'fe80::1',
    'fc00::1',
    'ff02::1',
    '2001:db8::1',
    '::ffff:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::7f00:1',
    '2002:7f00:1::',
    '3fff::1',
    '5f00::1',
    '100::1',
    '100:0:0:1::1',
    '::7f00:1',
    '::ffff:0:7f00:1',
    '2001::1',
    '4000::1',
    '192.88.99.1',
    '198.51.100.1',
    '203.0.113.1',
    '192.0.0.1',
    '169.254.169.254%eth0',
    'localhost',
    '',
  ])('refuses %s', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})

describe('createPublicLookup', () => {
  it('refuses a name that resolves to this machine, at connect time', async () => {
    await expect(promisify(createPublicLookup())('localhost', {})).rejects.toThrow('which is not public')
  })
})
