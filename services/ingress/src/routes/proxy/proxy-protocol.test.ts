import { expect, test } from 'vitest'
import { readProxyHeader } from './proxy-protocol.ts'

const signature = '0d0a0d0a000d0a515549540a'
const v4 = 'c0000207' + '0a000001' + '1f90' + '0050'
const v6 = `${'20010db8000000000000000000000001'.repeat(2)}1f900050`
const binary = (rest: string, after = '') => Buffer.from(signature + rest + after, 'hex')
const text = (line: string) => Buffer.from(line, 'latin1')

test.each([
  ['version 1, IPv4', text('PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\nGET /'), { length: 39, address: '192.0.2.7' }],
  ['version 1, IPv6', text('PROXY TCP6 2001:db8::1 ::1 8080 80\r\n'), { length: 36, address: '2001:db8::1' }],
  ['version 1, no address', text('PROXY UNKNOWN\r\nGET /'), { length: 15, address: '' }],
  ['version 1, a text for no address', text('PROXY UNKNOWN ffff::1 x\r\n'), { length: 25, address: '' }],
  ['version 1, the first half', text('PROXY TCP4 192.0.2.7'), 'more'],
  ['version 1, one byte', text('P'), 'more'],
  ['version 1, another family', text('PROXY TCP4 2001:db8::1 ::1 8080 80\r\n'), undefined],
  ['version 1, no IP', text('PROXY TCP4 example.com 10.0.0.1 1 2\r\n'), undefined],
  ['version 1, too long', text(`PROXY TCP4 ${'1'.repeat(100)}`), undefined],
  ['version 1, a bare line feed', text('PROXY TCP4 192.0.2.7 10.0.0.1 1 2\nGET / HTTP/1.1\r\n'), undefined],
  ['version 2, IPv4', binary('2111000c', v4), { length: 28, address: '192.0.2.7' }],
  ['version 2, IPv4 with more', binary('2111000f', `${v4}040000`), { length: 31, address: '192.0.2.7' }],
  ['version 2, IPv6', binary('21210024', v6), { length: 52, address: '2001:db8:0:0:0:0:0:1' }],
  ['version 2, a health check', binary('20000000'), { length: 16, address: '' }],
  ['version 2, a Unix socket', binary('21310002', '0000'), { length: 18, address: '' }],
  ['version 2, the first half', binary('2111000c', v4.slice(8)), 'more'],
  ['version 2, half of the signature', Buffer.from(signature, 'hex').subarray(0, 5), 'more'],
  ['version 2, too short for its family', binary('21110004', '00000000'), undefined],
  ['version 2, too long', binary('2111ffff'), undefined],
  ['version 3', binary('3111000c', v4), undefined],
  ['an unknown command', binary('2211000c', v4), undefined],
  ['no header', text('GET / HTTP/1.1\r\n\r\n'), undefined],
  ['two letters', text('GE'), undefined],
])('%s', (_, bytes, found) => {
  expect(readProxyHeader(bytes)).toEqual(found)
})
