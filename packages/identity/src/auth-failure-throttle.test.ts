import { describe, expect, it } from 'vitest'
import { createAuthFailureThrottle } from './auth-failure-throttle.ts'

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
