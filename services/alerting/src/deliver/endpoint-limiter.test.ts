import { expect, test } from 'vitest'
import { EndpointLimiter } from './endpoint-limiter.ts'

const isGranted = (limiter: EndpointLimiter, nowMs: number) => limiter.acquire('ops', nowMs).isGranted

function fail(limiter: EndpointLimiter, times: number, nowMs: number): void {
  for (let n = 0; n < times; n += 1) {
    limiter.acquire('ops', nowMs)
    limiter.release('ops', false, nowMs)
  }
}

test('an endpoint that accepts alerts gets eight concurrent attempts, and no more', () => {
  const limiter = new EndpointLimiter()
  expect(Array.from({ length: 9 }, () => isGranted(limiter, 0))).toEqual([...Array(8).fill(true), false])
  expect(limiter.acquire('other', 0).isGranted).toBe(true)
  limiter.release('ops', true, 0)
  expect(isGranted(limiter, 0)).toBe(true)
})

test('an endpoint that failed gets one attempt at a time until it accepts an alert', () => {
  const limiter = new EndpointLimiter()
  fail(limiter, 1, 0)
  expect([isGranted(limiter, 0), isGranted(limiter, 0)]).toEqual([true, false])
  limiter.release('ops', true, 0)
  expect([isGranted(limiter, 0), isGranted(limiter, 0)]).toEqual([true, true])
})

test('the circuit of an endpoint that keeps failing opens, twice as long each time, up to ten minutes; one success closes it', () => {
  const limiter = new EndpointLimiter()
  fail(limiter, 5, 0)
  expect(limiter.acquire('ops', 29_999)).toEqual({ isGranted: false, askAgainMs: 30_000 })
  expect([[...limiter.open(29_999)], [...limiter.open(30_000)]]).toEqual([['ops'], []])
  fail(limiter, 1, 30_000)
  expect(limiter.acquire('ops', 30_001)).toEqual({ isGranted: false, askAgainMs: 90_000 })
  for (let n = 0, nowMs = 90_000; n < 20; n += 1, nowMs += 600_000) fail(limiter, 1, nowMs)
  const lastMs = 90_000 + 19 * 600_000
  expect(limiter.acquire('ops', lastMs + 1)).toEqual({ isGranted: false, askAgainMs: lastMs + 600_000 })
  expect(isGranted(limiter, lastMs + 600_000)).toBe(true)
  limiter.release('ops', true, lastMs + 600_001)
  expect([isGranted(limiter, lastMs + 600_002), isGranted(limiter, lastMs + 600_002)]).toEqual([true, true])
})

test('eight attempts that fail together open the circuit for as long as five do', () => {
  const limiter = new EndpointLimiter()
  for (let n = 0; n < 8; n += 1) limiter.acquire('ops', 0)
  for (let n = 0; n < 8; n += 1) limiter.release('ops', false, n)
  expect(limiter.acquire('ops', 10)).toEqual({ isGranted: false, askAgainMs: 30_004 })
})

test('delayed jobs ask again one after the other', () => {
  const limiter = new EndpointLimiter()
  fail(limiter, 5, 0)
  const asked = Array.from({ length: 1_000 }, () => limiter.acquire('ops', 1))
  const times = asked.map((permit) => (permit.isGranted ? 0 : permit.askAgainMs))
  expect(times.slice(0, 3)).toEqual([30_000, 30_100, 30_200])
  expect(times.at(-1)).toBe(90_000)
})

test('beyond 50,000 endpoints the healthy ones are forgotten first, and none whose circuit is open', () => {
  const limiter = new EndpointLimiter()
  fail(limiter, 5, 0)
  for (let n = 0; n < 120_000; n += 1) {
    limiter.acquire(`e${n}`, 1)
    limiter.release(`e${n}`, n % 3 > 0, 1)
  }
  expect([[...limiter.open(1)], isGranted(limiter, 1)]).toEqual([['ops'], false])
})

test('when all circuits are open, the oldest endpoints are forgotten', () => {
  const limiter = new EndpointLimiter()
  for (let n = 0; n < 50_001; n += 1) {
    for (let times = 0; times < 5; times += 1) {
      limiter.acquire(`e${n}`, 0)
      limiter.release(`e${n}`, false, 0)
    }
  }
  expect([
    [...limiter.open(0)].length,
    limiter.acquire('e0', 1).isGranted,
    limiter.acquire('e50000', 1).isGranted,
  ]).toEqual([45_001, true, false])
})
