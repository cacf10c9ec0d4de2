import { describe, expect, it } from 'vitest'
import { createGuessGuard } from './guess-guard.ts'

function openGuard() {
  const time = { ms: 5_000 }
  const guard = createGuessGuard(() => time.ms)
  const guess = (address: string, times: number) => {
    for (let n = 0; n < times; n += 1) guard.countWrong(address)
  }
  return { guard, time, guess }
}

describe('the guard against guessing', () => {
  it('shuts an address out after 100 wrong credentials, for the rest of the minute, and no other address', () => {
    const { guard, time, guess } = openGuard()
    guess('192.0.2.1', 99)
    time.ms += 20_000
    expect([guard.isQuiet, guard.shutOutMs('192.0.2.1')]).toEqual([true, 0])
    guess('192.0.2.1', 1)
    guess('192.0.2.2', 99)
    expect([guard.isQuiet, guard.shutOutMs('192.0.2.1'), guard.shutOutMs('192.0.2.2')]).toEqual([false, 40_000, 0])
    time.ms += 39_999.5
    expect(guard.shutOutMs('192.0.2.1')).toBe(1)
    time.ms += 0.5
    expect([guard.shutOutMs('192.0.2.1'), guard.isQuiet]).toEqual([0, true])
  })

  it('counts anew in each minute', () => {
    const { guard, time, guess } = openGuard()
    for (let minute = 0; minute < 5; minute += 1) {
      guess('192.0.2.1', 99)
      time.ms += 60_000
    }
    expect(guard.isQuiet).toBe(true)
  })

  it('ends with the last of several addresses that are shut out', () => {
    const { guard, time, guess } = openGuard()
    guess('192.0.2.1', 100)
    time.ms += 30_000
    guess('192.0.2.2', 100)
    time.ms += 30_000
    expect([guard.shutOutMs('192.0.2.1'), guard.shutOutMs('192.0.2.2'), guard.isQuiet]).toEqual([0, 30_000, false])
  })
})
