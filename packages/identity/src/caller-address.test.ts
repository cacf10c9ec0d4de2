import { describe, expect, it } from 'vitest'
import { rightmostUntrusted } from './caller-address.ts'
import { forwardedBy } from './forwarded.ts'
import { compileAddresses } from './identity-rules.ts'

const proxies = compileAddresses(['10.0.0.0/8', 'fd00::/8', '192.0.2.1'])
const behind = (headers: Record<string, string>) => {
  const forwarded = forwardedBy(headers)
  if (forwarded === undefined) return 'nothing said'
  return rightmostUntrusted('10.0.0.1', forwarded.list, forwarded.readHop, proxies)
}

describe('the rightmost untrusted hop', () => {
  it.each([
    ['198.51.100.7', '198.51.100.7'],
    ['203.0.113.9, 198.51.100.7', '198.51.100.7'],
    ['203.0.113.9, 198.51.100.7, 10.9.9.9,192.0.2.1', '198.51.100.7'],
    ['10.1.1.1, 10.2.2.2', '10.1.1.1'],
    ['198.51.100.7:4711, 10.2.2.2:80', '198.51.100.7'],
    ['2001:db8::7, fd00::1', '2001:db8::7'],
    ['[2001:db8::7]:443, [fd00::1]', '2001:db8::7'],
    ['::ffff:198.51.100.7, ::ffff:10.0.0.9', '198.51.100.7'],
    ['fd00::1%eth0', 'fd00::1'],
    // What cannot be read ends the walk at the last hop that could.
    ['198.51.100.7, unknown', '10.0.0.1'],
    ['198.51.100.7, unknown, 10.2.2.2', '10.2.2.2'],
    ['198.51.100.7, , 10.2.2.2', '10.2.2.2'],
    [',10.2.2.2', '10.2.2.2'],
    ['198.51.100.7,', '10.0.0.1'],
    ['198.51.100.07', '10.0.0.1'],
    ['198.51.100.7 203.0.113.9', '10.0.0.1'],
    ['[198.51.100.7', '10.0.0.1'],
    ['', '10.0.0.1'],
    [','.repeat(5_000), '10.0.0.1'],
  ])('of X-Forwarded-For: %s is %s', (list, address) => {
    expect(behind({ 'x-forwarded-for': list })).toBe(address)
  })

  it.each([
    ['for=198.51.100.7', '198.51.100.7'],
    ['for=203.0.113.9, FOR="198.51.100.7:4711";proto=https;by=10.0.0.1, for=10.9.9.9', '198.51.100.7'],
    ['proto=http; for="[2001:db8::7]:443"', '2001:db8::7'],
    ['for=_hidden, for=10.2.2.2', '10.2.2.2'],
    ['for=unknown', '10.0.0.1'],
    ['for=198.51.100.7;for=203.0.113.9', '10.0.0.1'],
    ['proto=https', '10.0.0.1'],
    // A quote left open by the caller does not swallow what the proxy has appended.
    ['for="203.0.113.9, for=198.51.100.7', '198.51.100.7'],
    ['for=203.0.113.9;x=", for=10.2.2.2', '10.2.2.2'],
  ])('of Forwarded: %s is %s', (list, address) => {
    expect(behind({ forwarded: list })).toBe(address)
  })

  it('is that of X-Forwarded-For where both are given', () => {
    expect(behind({ 'x-forwarded-for': '198.51.100.7', forwarded: 'for=203.0.113.9' })).toBe('198.51.100.7')
    expect(behind({})).toBe('nothing said')
  })

  it('is looked for through 32 proxies at most', () => {
    const chain = (length: number) => ['198.51.100.7', ...Array(length).fill('10.1.1.1')].join(',')
    expect([behind({ 'x-forwarded-for': chain(31) }), behind({ 'x-forwarded-for': chain(32) })]).toEqual([
      '198.51.100.7',
      '10.1.1.1',
    ])
  })
})
