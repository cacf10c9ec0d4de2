import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openWatchedPage, seriousFindings, signIn, untilLoaded } from '../support/browser/open-browser.ts'
import { type PageStack, refusingKinds, startPageStack } from '../support/browser/page-stack.ts'

/** Where pictures of all pages go, if anywhere: a run leaves no change otherwise. */
const pictures = process.env.WEIR_TEST_PICTURES

let stack: PageStack
const paths = ['/', '/live', '/usage', '/subjects', '/decisions', '/blocks', '/alerts', '/policy', '/policy/change']
paths.push('/changes', '/keys', '/tokens', '/invoices', '/system', '/subjects/acme')
for (const tab of ['decisions', 'keys', 'alerts', 'invoices']) paths.push(`/subjects/acme?tab=${tab}`)

beforeAll(async () => {
  stack = await startPageStack()
  const ids: string[] = []
  for (const subject of refusingKinds) {
    for (let at = 0; at < 5; at += 1) {
      const { status, headers } = await stack.ask(subject)
      if (status === 429 && at === 3) ids.push(headers.get('weir-decision') ?? '')
    }
  }
  for (let at = 0; at < 45; at += 1) await stack.ask('acme')
  for (let at = 0; at < 5; at += 1) await stack.ask('bolt', 'POST /v1/search')
  await stack.untilCounted('acme', 45)
  await stack.untilCounted('blocking', 4)
  const alert = await waitUntil(
    async () => (await stack.api<{ items: { id: string }[] }>('GET /v1/alerts?limit=1')).items[0],
    { deadlineMs: 20_000 },
  )
  const [change] = (await stack.api<{ items: { id: string }[] }>('GET /v1/changes?limit=1')).items
  paths.push(...ids.map((id) => `/decisions/${id}`), `/alerts/${alert?.id}`, `/changes/${change?.id}`)
})
afterAll(() => stack?.close())

describe.each([
  [1_440, 'light'],
  [1_440, 'dark'],
  [380, 'light'],
  [380, 'dark'],
] as const)('point 2: every page at %d px, %s', (width, scheme) => {
  it('has its data, scrolls sideways nowhere, and has no serious finding of axe, no error and no foreign request', async () => {
    const { page, faults, close } = await stack.open('/', undefined, { width, scheme })
    const found: unknown[] = []
    for (const path of paths) {
      await page.goto(stack.console + path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await untilLoaded(page)
      const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      if (wide > 0) found.push(`${path} is ${wide} px too wide`)
      for (const one of await page.locator('[role=alert]').allTextContents()) found.push(`${path}: ${one}`)
      for (const one of await seriousFindings(page)) found.push(`${path}: ${one}`)
      if (pictures !== undefined) {
        await mkdir(pictures, { recursive: true })
        const name = path.slice(1).replaceAll(/[^a-z]+/g, '-') || 'overview'
        await page.screenshot({ path: join(pictures, `${name}-${width}-${scheme}.png`), fullPage: true })
      }
    }
    expect(found).toEqual([])
    expect(faults).toEqual([])
    await close()
  })
})

it('point 3: a first load is under 200 kB and is there within a second', async () => {
  const { page, bytes, close } = await openWatchedPage(stack.browser, { origin: stack.console })
  await signIn(page, `${stack.console}/`, stack.weir.line.adminToken)
  await untilLoaded(page)
  expect(bytes()).toBeLessThan(200_000)
  // With what was loaded forgotten, but signed in: as somebody comes back after an upgrade.
  const wire = await page.context().newCDPSession(page)
  await wire.send('Network.clearBrowserCache')
  await page.goto(`${stack.console}/`)
  const took = 'performance.getEntriesByType("navigation")[0].loadEventEnd'
  const ms = await waitUntil(async () => (await page.evaluate<number>(took)) || undefined, { deadlineMs: 5_000 })
  expect(ms).toBeLessThan(1_000)
  await close()
})
