import { expect, it } from 'vitest'
import { createAuthFailureThrottle } from './guess-protection.ts'

it('Wrong credentials are refused after 100 of their address, for the rest of its minute, and of no other address', () => {
  const time = { ms: 5_000 }
  const throttle = createAuthFailureThrottle(() => time.ms)
  const guess = (address: string, times: number) =>
    Array.from({ length: times }, () => throttle.countWrong(address)).filter((ms) => ms > 0)
  expect(guess('192.0.2.1', 99)).toEqual([])
  time.ms += 20_000
  expect(guess('192.0.2.1', 2)).toEqual([40_000])
  expect(guess('192.0.2.2', 100)).toEqual([])
  time.ms += 39_999.5
  expect([guess('192.0.2.1', 1), guess('192.0.2.2', 1)]).toEqual([[1], [20_001]])
  time.ms += 0.5
  expect(guess('192.0.2.1', 100)).toEqual([])
})
