import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { CircuitBreaker } from './circuit-breaker.ts'

const deadlineMs = 25

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

interface Probe {
  answer(): void
  fail(): void
}

function openBreaker(isReachable = () => true) {
  const probes: Probe[] = []
  const probe = () => {
    if (!isReachable()) return undefined
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    probes.push({ answer: resolve, fail: () => reject(new Error('gone')) })
    return promise
  }
  const breaker = new CircuitBreaker({ probe, deadlineMs, isOpen: false })
  breaker.open()
  return { breaker, probes }
}

/** Lets what was promised be heard. */
const settle = () => vi.advanceTimersByTimeAsync(0)

test('an open circuit probes every 100 ms, and closes when a probe is answered within the deadline', async () => {
  const { breaker, probes } = openBreaker()
  await vi.advanceTimersByTimeAsync(99)
  expect(probes.length).toBe(0)
  await vi.advanceTimersByTimeAsync(1)
  expect(probes.length).toBe(1)
  await vi.advanceTimersByTimeAsync(deadlineMs)
  probes[0]?.answer()
  await settle()
  expect([breaker.isOpen, breaker.opened]).toEqual([false, 1])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(probes.length).toBe(1)
})

test('an answer after the deadline does not close it, the next in time does', async () => {
  const { breaker, probes } = openBreaker()
  await vi.advanceTimersByTimeAsync(100 + deadlineMs + 1)
  probes[0]?.answer()
  await settle()
  expect(breaker.isOpen).toBe(true)
  await vi.advanceTimersByTimeAsync(100 - deadlineMs)
  probes[1]?.answer()
  await settle()
  expect(breaker.isOpen).toBe(false)
})

test('a server that hangs gets one probe, not one every 100 ms; a failed probe is followed by another', async () => {
  const { breaker, probes } = openBreaker()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(probes.length).toBe(1)
  probes[0]?.fail()
  await vi.advanceTimersByTimeAsync(100)
  expect(probes.length).toBe(2)
  expect(breaker.isOpen).toBe(true)
})

test('no probe is sent while there is no connection', async () => {
  let isReachable = false
  const { breaker, probes } = openBreaker(() => isReachable)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(probes.length).toBe(0)
  isReachable = true
  breaker.probe()
  probes[0]?.answer()
  await settle()
  expect(breaker.isOpen).toBe(false)
})

test('a callback for its closing runs once, also when the circuit will never close', async () => {
  const { breaker, probes } = openBreaker()
  const ran: string[] = []
  breaker.onceClosed(() => ran.push('closed'))
  breaker.probe()
  probes[0]?.answer()
  await settle()
  breaker.open()
  breaker.onceClosed(() => ran.push('stopped'))
  breaker.stop()
  breaker.onceClosed(() => ran.push('after'))
  expect(ran).toEqual(['closed', 'stopped', 'after'])
  await vi.advanceTimersByTimeAsync(1_000)
  expect([breaker.isOpen, probes.length]).toEqual([true, 1])
})

test('an answer that came while this process was busy closes the circuit: its delay is not the server’s', async () => {
  vi.useRealTimers()
  let probes = 0
  const probe = () => {
    probes += 1
    return new Promise((resolve) => setImmediate(resolve))
  }
  const breaker = new CircuitBreaker({ probe, deadlineMs: 20, isOpen: true })
  breaker.probe()
  for (const startMs = performance.now(); performance.now() - startMs < 60; );
  await expect.poll(() => breaker.isOpen).toBe(false)
  expect(probes).toBe(1)
  breaker.stop()
})
