import { createRequire } from 'node:module'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { collectProcessMetrics } from './process-metrics.ts'
import { waitUntil } from './wait-until.ts'

async function readLag(metrics: Registry, which: string): Promise<number> {
  const text = await metrics.metrics()
  return Number(new RegExp(`^weir_nodejs_eventloop_lag_${which}_seconds (\\S+)$`, 'm').exec(text)?.[1])
}

test('The metrics of the event loop show a stall, and nothing of the time between two samples', async () => {
  const metrics = new Registry()
  collectProcessMetrics(metrics)
  expect(await readLag(metrics, 'min')).toBe(0)
  // A scrape begins a new time between two samples: the stall comes after the next sample, and is read after another.
  let turn = 0
  const isSeen = async () => {
    turn += 1
    if (turn % 2 === 0) return (await readLag(metrics, 'max')) > 0.2
    const stallUntilMs = performance.now() + 400
    while (performance.now() < stallUntilMs);
    return false
  }
  expect(await waitUntil(isSeen, { deadlineMs: 20_000, everyMs: 250 })).toBe(true)
  // A machine that is busy delays single samples, not each of several.
  const isQuiet = async () => (await readLag(metrics, 'min')) < 0.05
  expect(await waitUntil(isQuiet, { deadlineMs: 20_000, everyMs: 500 })).toBe(true)
})

test('Other users of the histogram of the event loop get that of Node', () => {
  collectProcessMetrics(new Registry())
  const { monitorEventLoopDelay } = createRequire(import.meta.url)('node:perf_hooks')
  expect('percentiles' in monitorEventLoopDelay()).toBe(true)
})
