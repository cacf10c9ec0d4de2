import { expect, test } from 'vitest'
import { parseTimeZone } from './time-zone.ts'

test('time zones are those of IANA, named as they are written, in upper and lower case of their own', () => {
  for (const zone of ['UTC', 'Asia/Kathmandu', 'Asia/Katmandu', 'America/Port-au-Prince', 'Etc/GMT+5', 'GB-Eire']) {
    expect([zone, zone.toLowerCase(), zone.toUpperCase()].map(parseTimeZone)).toEqual([zone, zone, zone])
  }
  expect(parseTimeZone('US/Pacific-New')).toBe('America/Los_Angeles')
  for (const zone of [
    '',
    'Mars/Olympus',
    '+05:45',
    '-03',
    'PST',
    '../../etc',
    'Asia/',
    'SystemV/PST8',
    'systemv/hst10',
  ]) {
    expect(parseTimeZone(zone)).toBeUndefined()
  }
})
