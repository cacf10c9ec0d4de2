import { BlockList, isIPv4 } from 'node:net'
import { didYouMean } from '@weir/core/suggest.ts'
import { expect, test } from 'vitest'
import {
  parseCidr,
  parseCostSource,
  parseDurationMs,
  parseHost,
  parseHttpUrl,
  parseName,
  parseOrigin,
  parseTimeMs,
} from './policy-values.ts'

test.each([
  ['500ms', 500],
  ['10s', 10_000],
  ['1m', 60_000],
  ['2h', 7_200_000],
  ['7d', 604_800_000],
  ['0m', undefined],
  ['1.5h', undefined],
  ['-1m', undefined],
  ['1h30m', undefined],
  ['1M', undefined],
  ['60', undefined],
  ['', undefined],
  ['999999999999999d', undefined],
])('the duration %j is %j ms', (text, ms) => {
  expect(parseDurationMs(text)).toBe(ms)
})

test.each([
  ['http://a', 'http://a'],
  ['HTTPS://A.example.com:443/', 'https://a.example.com'],
  ['http://[::1]:80', 'http://[::1]'],
  ['http://a/b', undefined],
  ['http://a/?b', undefined],
  ['http://a#b', undefined],
  ['http://u@a', undefined],
  ['file:///etc/passwd', undefined],
  ['javascript:alert(1)', undefined],
  ['http://', undefined],
])('the origin %j is %j', (text, origin) => {
  expect(parseOrigin(text)).toBe(origin)
})

test('a URL over 2,048 characters is refused', () => {
  expect(parseHttpUrl(`http://a/${'b'.repeat(2_039)}`)?.hostname).toBe('a')
  expect(parseHttpUrl(`http://a/${'b'.repeat(2_040)}`)).toBeUndefined()
})

test.each([
  ['API.Example.com', 'api.example.com'],
  ['*', '*'],
  ['127.0.0.1', '127.0.0.1'],
  ['[::1]', '[::1]'],
  ['*.Example.com', '*.example.com'],
  ['*.*.com', undefined],
  ['a.*.com', undefined],
  ['*.[::1]', undefined],
  ['*.', undefined],
  ['a:80', undefined],
  ['a/b', undefined],
  ['-a', undefined],
  ['', undefined],
])('the host %j is %j', (text, host) => {
  expect(parseHost(text)).toBe(host)
})

test('names are bounded and printable', () => {
  expect(parseName('a'.repeat(64))).toBeDefined()
  for (const name of ['', 'a'.repeat(65), '-a', '.a', 'a b', 'a"', 'ä', 'a:b', 'a\n'])
    expect(parseName(name)).toBeUndefined()
})

test('a near name is suggested, a far one is not', () => {
  expect(didYouMean('minut', ['day', 'minute'])).toBe('; did you mean minute?')
  expect(didYouMean('ON_UNAVAILABLE', ['onUnavailable'])).toBe('; did you mean onUnavailable?')
  expect(didYouMean('xyz', ['day', 'minute'])).toBe('')
  expect(didYouMean('a', ['b'])).toBe('')
  expect(didYouMean('', ['a'])).toBe('')
})

test('a cost is read from a header, a parameter or a place in JSON', () => {
  expect(parseCostSource('header:X-Cost')).toEqual({ kind: 'header', name: 'x-cost' })
  expect(parseCostSource('query:Count')).toEqual({ kind: 'query', name: 'Count' })
  expect(parseCostSource('json:/a~1b/0')).toEqual({ kind: 'json', pointer: '/a~1b/0' })
  const wrong = ['header:', 'json:domains', 'json:', 'json:/a~2', 'cheap', 'header:a b', 'header:a:b', 'Header:a']
  for (const text of wrong) expect(parseCostSource(text)).toBeUndefined()
})

test.each([
  ['10.0.0.0/8', '10.0.0.0/8'],
  ['127.0.0.1', '127.0.0.1/32'],
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['::/0', '::/0'],
  ['::1', '::1/128'],
  ['FD00::/8', 'fd00::/8'],
  ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8/128'],
  ['::1.2.3.4', '::1.2.3.4/128'],
  ['64:ff9b::1.2.3.4', '64:ff9b::1.2.3.4/128'],
])('the addresses %j are %j, and the ingress can compare addresses with them', (text, cidr) => {
  expect(parseCidr(text)).toEqual({ kind: 'cidr', cidr })
  const [network = '', bits] = cidr.split('/')
  expect(() => new BlockList().addSubnet(network, Number(bits), isIPv4(network) ? 'ipv4' : 'ipv6')).not.toThrow()
})

const notCidrs =
  '10.0.0.1/8 fd00::1/8 10.0.0.0/33 ::/129 010.0.0.0/8 010.0.0.1 10.0.0/8 256.0.0.0 1::2::3 1:2:3:4:5:6:7 ::: 10.0.0.0/ ' +
  '1:2:3:4:5:6:7::8 ::ffff:10.0.0.1 ::ffff:0.0.0.0/96 localhost fe80::1%eth0 64:ff9b::010.0.0.1 ::0.0.0.096 1.2.3.4::'
test.each(['', ...notCidrs.split(' ')])('%j is not a block of addresses', (text) => {
  expect(parseCidr(text).kind).toBe('wrong')
})

test.each([
  ['2027-01-31T00:00:00Z', '2027-01-31T00:00:00.000Z'],
  ['2027-01-31T05:45:00.5+05:45', '2027-01-31T00:00:00.500Z'],
  ['2027-02-30T00:00:00Z', undefined],
  ['2027-01-31', undefined],
  ['2027-01-31T00:00:00', undefined],
  ['2027-01-31T25:00:00Z', undefined],
  ['2027-01-31T00:00:00Z[UTC]', undefined],
  ['tomorrow', undefined],
])('the time %j is %j', (text, iso) => {
  const ms = parseTimeMs(text)
  expect(ms === undefined ? undefined : new Date(ms).toISOString()).toBe(iso)
})
