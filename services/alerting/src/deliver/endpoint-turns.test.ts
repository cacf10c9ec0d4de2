import { expect, test } from 'vitest'
import { EndpointTurns } from './endpoint-turns.ts'

const isFree = (turns: EndpointTurns, nowMs: number) => turns.enter('ops', nowMs).isFree

function fail(turns: EndpointTurns, times: number, nowMs: number): void {
  for (let n = 0; n < times; n += 1) {
    turns.enter('ops', nowMs)
    turns.leave('ops', false, nowMs)
  }
}

test('an endpoint that takes what it is sent has several attempts at a time, and no more', () => {
  const turns = new EndpointTurns()
  expect(Array.from({ length: 9 }, () => isFree(turns, 0))).toEqual([...Array(8).fill(true), false])
  expect(turns.enter('other', 0).isFree).toBe(true)
  turns.leave('ops', true, 0)
  expect(isFree(turns, 0)).toBe(true)
})

test('one that failed has one attempt at a time until it takes one', () => {
  const turns = new EndpointTurns()
  fail(turns, 1, 0)
  expect([isFree(turns, 0), isFree(turns, 0)]).toEqual([true, false])
  turns.leave('ops', true, 0)
  expect([isFree(turns, 0), isFree(turns, 0)]).toEqual([true, true])
})

test('one that fails again and again is left alone, twice as long each time, up to ten minutes; one success ends it', () => {
  const turns = new EndpointTurns()
  fail(turns, 5, 0)
  expect(turns.enter('ops', 29_999)).toEqual({ isFree: false, askAgainMs: 30_000 })
  expect([turns.openCount(29_999), turns.openCount(30_000)]).toEqual([1, 0])
  fail(turns, 1, 30_000)
  expect(turns.enter('ops', 30_001)).toEqual({ isFree: false, askAgainMs: 90_000 })
  for (let n = 0, nowMs = 90_000; n < 20; n += 1, nowMs += 600_000) fail(turns, 1, nowMs)
  const lastMs = 90_000 + 19 * 600_000
  expect(turns.enter('ops', lastMs + 1)).toEqual({ isFree: false, askAgainMs: lastMs + 600_000 })
  expect(isFree(turns, lastMs + 600_000)).toBe(true)
  turns.leave('ops', true, lastMs + 600_001)
  expect([isFree(turns, lastMs + 600_002), isFree(turns, lastMs + 600_002)]).toEqual([true, true])
})

test('eight that fail together leave it alone for as long as five do', () => {
  const turns = new EndpointTurns()
  for (let n = 0; n < 8; n += 1) turns.enter('ops', 0)
  for (let n = 0; n < 8; n += 1) turns.leave('ops', false, n)
  expect(turns.enter('ops', 10)).toEqual({ isFree: false, askAgainMs: 30_004 })
})

test('those that are put off ask again one behind the other', () => {
  const turns = new EndpointTurns()
  fail(turns, 5, 0)
  const asked = Array.from({ length: 1_000 }, () => turns.enter('ops', 1))
  const times = asked.map((turn) => (turn.isFree ? 0 : turn.askAgainMs))
  expect(times.slice(0, 3)).toEqual([30_000, 30_100, 30_200])
  expect(times.at(-1)).toBe(90_000)
})

test('of more than 50,000 endpoints the ones that are well are forgotten first, and none that is left alone', () => {
  const turns = new EndpointTurns()
  fail(turns, 5, 0)
  for (let n = 0; n < 120_000; n += 1) {
    turns.enter(`e${n}`, 1)
    turns.leave(`e${n}`, n % 3 > 0, 1)
  }
  expect([turns.openCount(1), isFree(turns, 1)]).toEqual([1, false])
})

test('when all endpoints are left alone, the oldest are forgotten', () => {
  const turns = new EndpointTurns()
  for (let n = 0; n < 50_001; n += 1) {
    for (let times = 0; times < 5; times += 1) {
      turns.enter(`e${n}`, 0)
      turns.leave(`e${n}`, false, 0)
    }
  }
  expect([turns.openCount(0), turns.enter('e0', 1).isFree, turns.enter('e50000', 1).isFree]).toEqual([
    45_001,
    true,
    false,
  ])
})
