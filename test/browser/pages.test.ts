import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { paths as pagePaths } from '@weir/page/web/paths.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, describe, expect, it } from 'vitest'
import { openWatchedPage, seriousFindings, signIn, untilLoaded } from '../support/browser/open-browser.ts'
import { refusingKinds, startPageStack } from '../support/browser/page-stack.ts'
import { fillShowcase, keepAsking, showcaseEnv, showcasePolicy } from '../support/browser/showcase.ts'
import { forFile } from '../support/opened.ts'

/** Where pictures of all pages go, if anywhere: a run leaves no change otherwise. */
const pictures = process.env.WEIR_TEST_PICTURES

/** Every path but that of customers, which opens with a link of their own; some with what they are asked. */
const paths = pagePaths.filter((path) => !path.includes(':') && path !== '/me').map(String)
paths.push('/usage?compare=previous&split=off&span=7d', '/usage?view=answers', '/usage?by=subject%2Croute&top=5')
paths.push('/policy?kind=limits&name=trial-day', '/alerts?outcome=failed%2Cgiven_up%2Cdropped', '/alerts?endpoint=ops')
paths.push('/search?q=opps', '/usage?unit=tokens&by=model&span=30d', '/usage?unit=tokens&by=subject%2Cmodel')
paths.push('/invoices/x', '/subjects/northwind')
for (const tab of ['limits', 'keys', 'decisions', 'answers', 'alerts', 'spend'])
  paths.push(`/subjects/northwind?tab=${tab}`)

const stack = await forFile(startPageStack(showcasePolicy, showcaseEnv))
const settled = await fillShowcase(stack, Date.now())
const stopAsking = keepAsking(stack)
const ids: string[] = []
for (const subject of refusingKinds) {
  for (let at = 0; at < 5; at += 1) {
    const { status, headers } = await stack.ask(subject)
    if (status === 429 && at === 3) ids.push(headers.get('weir-decision') ?? '')
  }
}
for (let at = 0; at < 45; at += 1) await stack.ask('acme')
await stack.untilCounted('acme', 45)
await stack.untilCounted('blocking', 4)
const firstOf = async (path: string) => (await stack.api<{ items: { id: string }[] }>(`GET ${path}`)).items[0]?.id
const alert = await waitUntil(() => firstOf('/v1/alerts?limit=1&subject=acme'), { deadlineMs: 20_000 })
const [failed, change] = await Promise.all([
  firstOf('/v1/alerts?limit=1&subject=quarry'),
  firstOf('/v1/changes?limit=1'),
])
paths.push(...[...ids, settled].map((id) => `/decisions/${id}`), `/alerts/${alert}`, `/alerts/${failed}`)
paths.push(`/changes/${change}`)
const portalToken = (await stack.api<{ token: string }>('POST /v1/subjects/northwind/portal', {})).token
afterAll(() => void stopAsking())

describe.each([
  [1_440, 'light'],
  [1_440, 'dark'],
  [380, 'light'],
  [380, 'dark'],
] as const)('point 2: every page at %d px, %s', (width, scheme) => {
  it.each([
    ['operators', () => stack.weir.line.adminToken, paths],
    ['customers', () => portalToken, ['/me']],
  ] as const)(
    'of %s has its data, scrolls sideways nowhere, and has no serious finding of axe, no error and no foreign request',
    async (_, tokenOf, all) => {
      const { page, faults, close } = await stack.open('/', tokenOf(), { width, scheme })
      const found: unknown[] = []
      for (const path of all) {
        await page.goto(stack.console + path)
        await page.getByRole('heading', { level: 1 }).waitFor()
        await untilLoaded(page)
        if (path === '/live') await page.locator('tbody tr').first().waitFor()
        const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
        if (wide > 0) found.push(`${path} is ${wide} px too wide`)
        for (const one of await page.locator('[role=alert]').allTextContents()) found.push(`${path}: ${one}`)
        for (const one of await seriousFindings(page)) found.push(`${path}: ${one}`)
        if (pictures !== undefined) {
          await mkdir(pictures, { recursive: true })
          const name =
            path
              .slice(1)
              .replaceAll(/[^a-z0-9]+/g, '-')
              .slice(0, 60) || 'overview'
          await page.screenshot({ path: join(pictures, `${name}-${width}-${scheme}.png`), fullPage: true })
        }
      }
      expect(found).toEqual([])
      expect(faults).toEqual([])
      await close()
    },
  )
})

it('an alert that did not arrive is found, says when the next try at an endpoint is due, and is sent again to that endpoint alone', async () => {
  const { page, close } = await stack.open('/')
  const news = page.getByRole('region', { name: 'Needs attention' })
  await news.getByRole('link', { name: 'Not delivered' }).click()
  const told = page.getByRole('region', { name: 'Alerts' }).locator('tbody tr')
  await told.first().waitFor()
  // What reached no endpoint, or all of them, is not among them.
  for (const text of await told.allTextContents()) expect(text).toContain('✕')
  await told
    .getByRole('link', { name: /quarry/ })
    .first()
    .click()
  await page.getByRole('heading', { level: 1, name: /quarry/ }).waitFor()
  const row = page.getByRole('table', { name: 'Delivery status' }).locator('tbody tr', { hasText: 'ops' })
  expect(await row.textContent()).toMatch(/^ops✕ failed4 of 10, in \d+ min/)
  await row.getByRole('button', { name: 'Resend' }).click()
  const sent = page.waitForRequest((request) => request.url().endsWith('/redeliver'))
  await page.getByRole('dialog').getByRole('button', { name: 'Resend' }).click()
  expect((await sent).postDataJSON()).toEqual({ endpoint: 'ops' })
  const asked = page.getByRole('dialog').getByText('Queued 1 delivery.')
  await asked.waitFor()
  // It stays, whatever becomes of the delivery meanwhile.
  await expect.poll(() => row.textContent(), { timeout: 20_000 }).not.toMatch(/^ops✕ failed4 of 10/)
  expect(await asked.isVisible()).toBe(true)
  await page.getByRole('dialog').getByRole('button', { name: 'Done' }).click()
  await close()
})

it('alerts are those of the chosen span; an endpoint leads to its deliveries, and says where they are held back', async () => {
  const { page, faults, close } = await stack.open('/alerts?span=1h')
  const told = page.getByRole('region', { name: 'Alerts' }).locator('tbody tr')
  await told.filter({ hasText: 'juniper' }).first().waitFor()
  expect(await told.filter({ hasText: 'northwind' }).count()).toBe(0)
  await page.getByLabel('Span').selectOption('24h')
  await told.filter({ hasText: 'northwind' }).first().waitFor()
  await page.getByRole('link', { name: 'Endpoints and silences' }).click()
  const row = (name: string) => page.getByRole('table', { name: 'Endpoints' }).locator('tbody tr', { hasText: name })
  await row('finance').getByRole('link', { name: 'Deliveries' }).click()
  await expect.poll(() => told.count()).toBe(1)
  expect(await told.allTextContents()).toEqual([expect.stringMatching(/juniper.*finance ✓ deliveredSilence$/)])
  // Nothing on this machine answers to its name.
  for (let at = 0; at < 6; at += 1) await stack.api('POST /v1/endpoints/ops/test', {})
  await page.goto(`${stack.console}/endpoints`)
  await row('ops').getByText('✕ failing: deliveries held back').waitFor({ timeout: 60_000 })
  expect(await row('finance').textContent()).not.toContain('failing')
  expect(faults).toEqual([])
  await close()
})

it('the search says what has a name, goes there if it is one thing, and says so if it is none', async () => {
  const { page, faults, close } = await stack.open()
  const search = async (text: string) => {
    await page.getByLabel('Find a subject').fill(text)
    await page.keyboard.press('Enter')
  }
  await search('finance')
  await page.getByRole('region', { name: 'finance' }).getByText('slack').first().waitFor()
  await search('fixed')
  const found = page.getByRole('table', { name: 'Results' })
  await found.getByRole('link').first().waitFor()
  expect((await found.getByRole('row').allTextContents()).toSorted()).toEqual([
    expect.stringMatching(/^What/),
    ...['limit', 'plan', 'subject'].map((kind) => expect.stringMatching(new RegExp(`^${kind}fixed`))),
  ])
  const { items } = await stack.api<{ items: { id: string; summary: string }[] }>('GET /v1/alerts?subject=harbor')
  await search(items[0]?.id ?? '')
  await page.getByRole('heading', { level: 1, name: items[0]?.summary ?? '' }).waitFor()
  await search('opps')
  await page.getByText('No exact match for opps').waitFor()
  expect(faults).toEqual([])
  await close()
})

it('a customer’s page lists the keys that act there, and no other acts', async () => {
  const { page, close } = await stack.open('/me', portalToken)
  await page.keyboard.press('?')
  const dialog = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  const keys = (await dialog.locator('dt').allTextContents()).map((one) => one.trim())
  expect(keys).toEqual(['j k', 'Enter', '[ ]', 't', '← →', 'Esc'])
  await dialog.getByRole('button', { name: 'Done' }).click()
  for (const key of ['g', 'u']) await page.keyboard.press(key)
  expect(new URL(page.url()).pathname).toBe('/me')
  await close()
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
