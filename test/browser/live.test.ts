import autocannon, { type Client } from 'autocannon'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type PageStack, startPageStack } from '../support/browser/page-stack.ts'

/** Five minutes prove more; WEIR_TEST_LIVE_SECONDS says how long. */
const seconds = Number(process.env.WEIR_TEST_LIVE_SECONDS ?? 20)
const perSecond = 1_000

let stack: PageStack
beforeAll(async () => {
  stack = await startPageStack()
})
afterAll(() => stack?.close())

it('point 6: a thousand decisions a second are drawn at 30 frames, the heap stays, and what is not listed is counted', async () => {
  const { page, faults, close } = await stack.open('/live')
  await page.getByText('Connecting to the stream').waitFor({ state: 'detached' })
  const wire = await page.context().newCDPSession(page)
  const heapBytes = async () => {
    await wire.send('HeapProfiler.collectGarbage')
    return (await wire.send('Runtime.getHeapUsage')).usedSize
  }
  const load = new Promise<number>((done) => {
    const options = {
      ...({ url: `${stack.weir.line.ingress}/hello`, method: 'GET', sampleInt: 50, timeout: 10 } as const),
      ...{ connections: 10, overallRate: perSecond, duration: seconds },
      setupClient: (client: Client) => client.setHeadersAndBody({ 'x-api-key': 'heavy-key' }, undefined),
    }
    autocannon(options, (_, result) => done(result['2xx'] + result.non2xx))
  })
  await page.getByText(/not listed: more than 200 a second/).waitFor()
  const begun = await heapBytes()
  const [half, framesOver] = [
    (seconds * 1_000) / 2,
    'new Promise((done) => { let frames = 0; const end = performance.now() +',
  ]
  const frames = await page.evaluate<number>(
    `${framesOver} ${half}; const one = (at) => { frames += 1; at < end ? requestAnimationFrame(one) : done(frames) }; requestAnimationFrame(one) })`,
  )
  const grown = (await heapBytes()) - begun
  const asked = await load
  expect(asked).toBeGreaterThan(0.9 * perSecond * seconds)
  expect((frames / half) * 1_000).toBeGreaterThanOrEqual(30)
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
})
