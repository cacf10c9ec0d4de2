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

  const right = '198.51.100.7'
  it.each([
    `"${right}"`,
    `${right};`,
    `'${right}'`,
    `${right}:a`,
    `${right}:123456`,
    `${right}/32`,
    `for=${right}`,
    ...', unknown - _hidden localhost null [] [ ::: ::1:: 256.1.1.1 1.2.3 1.2.3.4.5 0xc6.0x33.0x64.0x07'.split(' '),
    ...'3325256711 198.51.25607 0306.063.0144.07 198.51.100.007 １９８.51.100.7'.split(' '),
    'a'.repeat(8_000),
  ])('of X-Forwarded-For that cannot be read (%s) is the trusted proxy', (list) => {
    expect(behind({ 'x-forwarded-for': list })).toBe('10.0.0.1')
  })

  it.each([` ${right} `, `\t${right}`, '::ffff:c633:6407', `[::ffff:${right}]:80`, `${right}:0`])(
    'of X-Forwarded-For in another form (%s) is found',
    (list) => expect(behind({ 'x-forwarded-for': list })).toBe(right),
  )

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
