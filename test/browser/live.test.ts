import autocannon, { type Client } from 'autocannon'
import type { CDPSession, Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { startPageStack } from '../support/browser/page-stack.ts'
import { forFile } from '../support/opened.ts'

/** Five minutes prove more; WEIR_TEST_LIVE_SECONDS says how long. */
const seconds = Number(process.env.WEIR_TEST_LIVE_SECONDS ?? 20)
const perSecond = 1_000

const stack = await forFile(startPageStack())

/** So long a stretch has some frames, and one or two times at which the page draws what came. */
const stretchMs = 250
/** A frame of 60 a second has so long. */
const frameMs = 16

interface Stretch {
  readonly frames: number
  readonly ms: number
  /** Of the page's main thread, whatever it did. */
  readonly busyMs: number
}

/** Looks at the page's main thread and its frames, stretch by stretch, until that is done. */
async function watchFrames(page: Page, wire: CDPSession, isDone: () => boolean): Promise<Stretch[]> {
  await wire.send('Performance.enable')
  await page.evaluate(
    'globalThis.drawn = 0; { const one = () => { drawn += 1; requestAnimationFrame(one) }; requestAnimationFrame(one) }',
  )
  const look = async () => {
    const { metrics } = await wire.send('Performance.getMetrics')
    const busyMs = (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000
    return { busyMs, ms: performance.now(), frames: await page.evaluate<number>('drawn') }
  }
  const found: Stretch[] = []
  let before = await look()
  while (!isDone()) {
    await page.evaluate(`new Promise((done) => setTimeout(done, ${stretchMs}))`)
    const now = await look()
    found.push({ frames: now.frames - before.frames, ms: now.ms - before.ms, busyMs: now.busyMs - before.busyMs })
    before = now
  }
  return found
}

const sorted = (values: readonly number[]) => values.toSorted((a, b) => a - b)
const at = (values: readonly number[], share: number) => sorted(values)[Math.floor(values.length * share)] ?? 0

it(
  'point 6: a thousand decisions a second are drawn at 30 frames with a free main thread, the heap stays, and what is not listed is counted',
  async () => {
    const { page, faults, close } = await stack.open('/live')
    await page.getByText('Connecting to the stream').waitFor({ state: 'detached' })
    const wire = await page.context().newCDPSession(page)
    const heapBytes = async () => {
      await wire.send('HeapProfiler.collectGarbage')
      return (await wire.send('Runtime.getHeapUsage')).usedSize
    }
    let isOver = false
    const load = new Promise<number>((done) => {
      const options = {
        ...({ url: `${stack.weir.line.ingress}/hello`, method: 'GET', sampleInt: 50, timeout: 10 } as const),
        connections: 10,
        overallRate: perSecond,
        duration: seconds,
        setupClient: (client: Client) => client.setHeadersAndBody({ 'x-api-key': 'heavy-key' }, undefined),
      }
      autocannon(options, (_, result) => {
        isOver = true
        done(result['2xx'] + result.non2xx)
      })
    })
    await page.getByText(/not listed: more than 200 per second/).waitFor()
    const begun = await heapBytes()
    const stretches = await watchFrames(page, wire, () => isOver)
    const grown = (await heapBytes()) - begun
    const asked = await load
    const sum = (name: keyof Stretch) => stretches.reduce((all, one) => all + one[name], 0)
    const perFrame = stretches.map(({ frames, busyMs }) => busyMs / Math.max(1, frames))
    const [framesPerSecond, median] = [(sum('frames') * 1_000) / sum('ms'), at(perFrame, 0.5)]
    const figures = { asked, framesPerSecond, median, p95: at(perFrame, 0.95), busy: sum('busyMs') / sum('ms'), grown }
    process.stdout.write(`point 6: ${JSON.stringify(figures)}\n`)
    expect(asked).toBeGreaterThan(0.9 * perSecond * seconds)
    expect(framesPerSecond).toBeGreaterThanOrEqual(30)
    expect(median).toBeLessThanOrEqual(frameMs)
    expect(grown).toBeLessThan(5_000_000)
    const counted = async () =>
      Number((await page.getByText(/not listed/).textContent())?.replaceAll(/\D/g, '').slice(0, -3))
    // 200 of each second are listed, of the seconds that the clock has.
    const least = asked - 200 * (seconds + 3)
    await expect.poll(counted).toBeGreaterThanOrEqual(least)
    expect(await counted()).toBeLessThan(asked)
    expect(await page.locator('tbody tr').count()).toBe(100)
    expect(faults).toEqual([])
    await close()
  },
  (seconds + 120) * 1_000,
)
