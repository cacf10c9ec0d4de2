import { expect, test } from 'vitest'
import { isCostSource } from './not-built.ts'
import { parseDurationMs, parseHost, parseHttpUrl, parseName, parseOrigin, parseTimeZone } from './policy-values.ts'
import { didYouMean } from './suggest.ts'

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
  ['*.example.com', undefined],
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

test('time zones are those of IANA', () => {
  for (const zone of ['UTC', 'Asia/Kathmandu', 'Asia/Katmandu', 'America/Argentina/Buenos_Aires', 'Etc/GMT+5']) {
    expect(parseTimeZone(zone)).toBe(zone)
  }
  for (const zone of ['', 'Mars/Olympus', '+05:45', '../../etc', 'Asia/']) expect(parseTimeZone(zone)).toBeUndefined()
})

test('a near name is suggested, a far one is not', () => {
  expect(didYouMean('minut', ['day', 'minute'])).toBe('; did you mean minute?')
  expect(didYouMean('ON_UNAVAILABLE', ['onUnavailable'])).toBe('; did you mean onUnavailable?')
  expect(didYouMean('xyz', ['day', 'minute'])).toBe('')
  expect(didYouMean('a', ['b'])).toBe('')
  expect(didYouMean('', ['a'])).toBe('')
})

test('the forms of a cost that is read from the request are known', () => {
  for (const text of ['header:X-Cost', 'query:count', 'json:/domains']) expect(isCostSource(text)).toBe(true)
  for (const text of ['header:', 'json:domains', 'cheap', 'header:a b']) expect(isCostSource(text)).toBe(false)
})
