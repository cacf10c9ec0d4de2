import { BlockList, isIPv4 } from 'node:net'
import { expect, it } from 'vitest'
import { parseCidr } from './parse-cidr.ts'

it.each(['0.0.0.0/0', '10.0.0.0/8', '::/0', '::1.2.3.4', '64:ff9b::192.0.2.1', '2001:DB8::/32'])(
  '%s is a block, and one that the ingress can compare addresses with',
  (text) => {
    const found = parseCidr(text)
    expect(found).toEqual({ kind: 'cidr', cidr: expect.stringContaining(text.toLowerCase()) })
    const [network = '', bits] = found.kind === 'cidr' ? found.cidr.split('/') : []
    expect(() => new BlockList().addSubnet(network, Number(bits), isIPv4(network) ? 'ipv4' : 'ipv6')).not.toThrow()
  },
)

it.each([
  '010.0.0.1',
  '64:ff9b::010.0.0.1',
  '::0.0.0.096',
  '::ffff:1.2.3.4',
  '::ffff:0.0.0.0/96',
  '1.2.3.4::',
  '10.0.0.1/8',
  'fe80::1%eth0',
])('%s is no block', (text) => {
  expect(parseCidr(text).kind).toBe('wrong')
})
