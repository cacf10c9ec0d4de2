import { describe, expect, it } from 'vitest'
import { createAuthFailureThrottle, createValidCredentialCache } from './guess-protection.ts'

function openThrottle() {
  const time = { ms: 5_000 }
  const throttle = createAuthFailureThrottle(() => time.ms)
  const guess = (address: string, times: number) => {
    for (let n = 0; n < times; n += 1) throttle.countWrong(address)
  }
  return { throttle, time, guess }
}

describe('Wrong credentials', () => {
  it('block their address after 100 of them, for the rest of the minute, and no other address', () => {
    const { throttle, time, guess } = openThrottle()
    guess('192.0.2.1', 99)
    time.ms += 20_000
    expect([throttle.isQuiet, throttle.blockedMs('192.0.2.1')]).toEqual([true, 0])
    guess('192.0.2.1', 1)
    guess('192.0.2.2', 99)
    expect([throttle.isQuiet, throttle.blockedMs('192.0.2.1'), throttle.blockedMs('192.0.2.2')]).toEqual([
      false,
      40_000,
      0,
    ])
    time.ms += 39_999.5
    expect(throttle.blockedMs('192.0.2.1')).toBe(1)
    time.ms += 0.5
    expect([throttle.blockedMs('192.0.2.1'), throttle.isQuiet]).toEqual([0, true])
  })

  it('are counted from 0 in each minute', () => {
    const { throttle, time, guess } = openThrottle()
    for (let minute = 0; minute < 5; minute += 1) {
      guess('192.0.2.1', 99)
      time.ms += 60_000
    }
    expect(throttle.isQuiet).toBe(true)
  })

  it('of several addresses are throttled until the last block ends', () => {
    const { throttle, time, guess } = openThrottle()
    guess('192.0.2.1', 100)
    time.ms += 30_000
    guess('192.0.2.2', 100)
    time.ms += 30_000
    expect([throttle.blockedMs('192.0.2.1'), throttle.blockedMs('192.0.2.2'), throttle.isQuiet]).toEqual([
      0,
      30_000,
      false,
    ])
  })
})

it('The cache remembers at least the latest 25,000 credentials for five minutes, and never more than twice as many', () => {
  const time = { ms: 0 }
  const cache = createValidCredentialCache(() => time.ms)
  const remembered = (from: number, to: number) => {
    let count = 0
    for (let n = from; n < to; n += 1) count += cache.has(`key ${n}`) ? 1 : 0
    return count
  }
  for (let n = 0; n < 130_000; n += 1) cache.add(`key ${n}`)
  expect(remembered(105_000, 130_000)).toBe(25_000)
  expect(remembered(0, 130_000)).toBeLessThanOrEqual(50_000)
  time.ms += 299_999
  cache.add('late')
  expect(remembered(105_000, 130_000)).toBe(25_000)
  for (let n = 0; n < 3; n += 1) {
    time.ms += 300_000
    cache.add(`later ${n}`)
  }
  expect(remembered(0, 130_000)).toBe(0)
})

it('Valid credentials age while they are asked for, those in use stay, and no other one needs to come for it', () => {
  const time = { ms: 5_000 }
  const cache = createValidCredentialCache(() => time.ms)
  for (const key of ['used', 'revoked']) cache.add(key)
  time.ms += 3_600_000
  expect([cache.has('used'), cache.has('revoked')]).toEqual([true, true])
  cache.add('used')
  time.ms += 300_000
  expect([cache.has('used'), cache.has('revoked')]).toEqual([true, false])
})
