import { expect, it } from 'vitest'
import { openBrowser, openWatchedPage, seriousFindings, signIn, untilLoaded } from '../support/browser/open-browser.ts'
import { forFile } from '../support/opened.ts'
import { until } from '../support/until.ts'
import { weirUp } from '../support/weir-up.ts'

/** What a first visit may load, with all headers. */
const bytesMax = 200_000

/** What each page of the navigation shows of what was asked below. */
const shown: Readonly<Record<string, RegExp>> = {
  Overview: /120\s*allowed.*25\s*refused/s,
  Live: /Latest decisions/,
  Usage: /demo-small/,
  Subjects: /demo-small.*✕ trial-day 100%, full/s,
  Decisions: /✕ refused.*trial-day/s,
  Blocks: /No active blocks/,
  Alerts: /demo-small/,
  Policy: /trial-day/,
  Keys: /demo-small/,
  Spend: /No subject has a price list/,
  System: /metering/,
}

const [browser, weir] = await Promise.all([forFile(openBrowser()), forFile(weirUp())])
const watched = await openWatchedPage(browser, { origin: weir.line.console })
const { ingress, demoKey, demoSmallKey } = weir.line
const ask = async (key: string | null) => {
  const answer = await fetch(`${ingress}/hello`, { headers: { 'x-api-key': key ?? '' } })
  await answer.arrayBuffer()
  return answer.status
}
for (let at = 0; at < 100; at += 1) await ask(demoKey)
const statuses = []
for (let at = 0; at < 45; at += 1) statuses.push(await ask(demoSmallKey))
expect(statuses.filter((status) => status === 429)).toHaveLength(25)
const headers = { authorization: `Bearer ${weir.line.adminToken}` }
const says = async (path: string, text: RegExp) =>
  text.test(await (await fetch(weir.line.console + path, { headers })).text())
const isThere = async () =>
  (await says('/v1/usage?step=total', /"allowed":120,"denied":25/)) && says('/v1/alerts', /demo-small/)
await until(isThere, 20_000)

it('the page opens by its token with less than 200 kB, shows every page with what was counted, and nothing goes wrong', async () => {
  const { page, faults } = watched
  await signIn(page, `${weir.line.console}/`, weir.line.adminToken)
  await untilLoaded(page)
  expect(watched.bytes()).toBeGreaterThan(20_000)
  expect(watched.bytes()).toBeLessThan(bytesMax)
  const nav = page.getByRole('navigation', { name: 'Pages' })
  const names = await nav.getByRole('link').allTextContents()
  expect(names).toEqual(Object.keys(shown))
  for (const name of names) {
    await nav.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
    await expect
      .poll(async () => {
        await untilLoaded(page)
        return (await page.locator('main').textContent()) ?? ''
      })
      .toMatch(shown[name] ?? /^$/)
    expect([name, await page.locator('[role=alert]').allTextContents()]).toEqual([name, []])
    expect([name, await seriousFindings(page)]).toEqual([name, []])
  }
  expect(faults).toEqual([])
})

it('subjects are listed by how near they are to a limit, or those alone that used 80%, with what they used', async () => {
  const { page, faults } = watched
  await page.getByRole('link', { name: 'Subjects', exact: true }).click()
  const row = page.locator('tbody tr').filter({ hasText: 'demo-small' })
  const says = async () =>
    await expect
      .poll(async () => (await row.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ').trim()))
      .toEqual(['demo-small 20 new ✕ trial-day 100%, full 45 25 56% Raise Block'])
  await page.getByRole('button', { name: 'Nearest limit' }).click()
  await page.waitForURL(/order=-share/)
  await says()
  await page.getByRole('checkbox', { name: 'at least 80%' }).check()
  await page.waitForURL(/share_from=0.8/)
  await says()
  expect(faults).toEqual([])
})

it('a decision that is made while the page is open comes into its live view within two seconds', async () => {
  const { page, faults } = watched
  await page.getByRole('link', { name: 'Live', exact: true }).click()
  await page.getByText('Connecting to the stream').waitFor({ state: 'detached' })
  const answer = await fetch(`${weir.line.ingress}/hello`, { headers: { 'x-api-key': weir.line.demoSmallKey ?? '' } })
  const id = answer.headers.get('weir-decision') ?? ''
  await page.locator(`a[href*="${id}"]`).waitFor({ timeout: 2_000 })
  expect(faults).toEqual([])
})
