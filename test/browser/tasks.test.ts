import { readFile } from 'node:fs/promises'
import type { DecisionPage } from '@weir/api/decisions.ts'
import type { Locator, Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { untilLoaded } from '../support/browser/open-browser.ts'
import { startPageStack } from '../support/browser/page-stack.ts'
import { fillShowcase, showcaseEnv, showcasePolicy } from '../support/browser/showcase.ts'
import { forFile } from '../support/opened.ts'

const stack = await forFile(startPageStack(showcasePolicy, showcaseEnv))
await fillShowcase(stack, Date.now())

/** A page, and a way to click on it that counts. */
async function openCounting(path?: string) {
  const opened = await stack.open(path)
  let clicks = 0
  const click = async (target: Locator) => {
    clicks += 1
    await target.click()
    await untilLoaded(opened.page)
  }
  return { ...opened, click, clicks: () => clicks }
}

const choose = async (page: Page, label: string, value: string) => {
  await page.getByLabel(label, { exact: true }).selectOption(value)
  await untilLoaded(page)
}

/** The rows of a file of CSV without quotes. */
async function downloaded(page: Page, click: () => Promise<void>) {
  const [download] = await Promise.all([page.waitForEvent('download'), click()])
  const lines = (await readFile(await download.path(), 'utf8')).trim().split(/\r?\n/)
  const [head = [], ...rows] = lines.map((line) => line.replaceAll('"', '').split(','))
  return { name: download.suggestedFilename(), head, rows }
}

it('support finds a refusal of a customer at a given minute in three clicks', async () => {
  const { rows } = await stack.api<DecisionPage>('GET /v1/decisions?subject=quarry&outcome=deny&from=now-6h&limit=1')
  const minute = rows[0]?.ts.slice(0, 16) ?? ''
  const { page, click, clicks, faults, close } = await openCounting()
  await page.getByLabel('Find a subject').fill('quarry')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'quarry' }).waitFor()
  await click(page.getByRole('link', { name: 'Decisions', exact: true }).last())
  // A choice in a list is a click as well.
  await click(page.getByLabel('Span'))
  await choose(page, 'Span', 'times')
  await page.getByLabel('Or jump to').fill(minute)
  await page.keyboard.press('Enter')
  const list = page.getByRole('region', { name: /^Decisions, \d+ \w+, \d\d:\d\d/ })
  await list.waitFor()
  const refused = list.locator('tbody tr', { hasText: '✕ refused' }).filter({ hasText: minute.slice(11) })
  await click(refused.first().getByRole('link').first())
  await page.getByText(/^Refused by (trial-minute|trial-day):/).waitFor()
  expect([clicks(), faults]).toEqual([3, []])
  await close()
})

it('by the name and the time the search leads there in one', async () => {
  const { rows } = await stack.api<DecisionPage>('GET /v1/decisions?subject=quarry&outcome=deny&from=now-6h&limit=1')
  const clock = rows[0]?.ts.slice(11, 16) ?? ''
  const { page, click, clicks, faults, close } = await openCounting()
  await page.getByLabel('Find a subject').fill(`quarry ${clock}`)
  await page.keyboard.press('Enter')
  const refused = page.locator('tbody tr', { hasText: '✕ refused' }).filter({ hasText: clock })
  await click(refused.first().getByRole('link').first())
  await page.getByText(/^Refused by (trial-minute|trial-day):/).waitFor()
  expect([clicks(), faults]).toEqual([1, []])
  await close()
})

it('finance sees who used most against the same days last month, and exports what is on the screen', async () => {
  const { page, faults, close } = await openCounting('/usage?by=subject')
  await choose(page, 'Span', 'month')
  await choose(page, 'Compare to', 'month')
  const table = page.getByRole('region', { name: /^By subject/ })
  await table.locator('tbody tr').nth(2).waitFor()
  const texts = await table
    .locator('tbody tr')
    .evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent ?? '')))
  const csv = await downloaded(page, () => table.getByRole('button', { name: 'Export CSV' }).click())
  expect(csv.name).toMatch(/^usage-by-subject-.+\.csv$/)
  const heads = await table.getByRole('columnheader').allTextContents()
  expect(heads[3]).toMatch(/^± 1 – \d+ \w+$/)
  expect(csv.head).toEqual(heads.map((one) => one.replace(' ↓', '')).filter((one) => one !== ''))
  const grouped = (value = '') => Number(value).toLocaleString('en-US')
  expect(csv.rows.map(([subject, units, , , decisions]) => [subject, grouped(units), grouped(decisions)])).toEqual(
    texts.map(([subject, units, , , decisions]) => [subject, units, decisions]),
  )

  await page.goto(`${stack.console}/subjects?span=24h&order=-denied`)
  await untilLoaded(page)
  const listed = await page.locator('tbody tr td:first-child').allTextContents()
  const subjects = await downloaded(page, () => page.getByRole('button', { name: 'Export CSV' }).click())
  expect([subjects.name, subjects.rows.map(([subject]) => subject)]).toEqual(['subjects-last-24-hours.csv', listed])
  expect(faults).toEqual([])
  await close()
})

it('the caller with most refused requests is found by address, blocked from its row, and served again', async () => {
  const { page, click, faults, close } = await openCounting('/usage?by=ip&span=24h&order=-denied')
  const rows = page.getByRole('region', { name: /^By ip|^By address/i }).locator('tbody tr')
  await rows.first().waitFor()
  const address = (await rows.first().locator('td').first().textContent()) ?? ''
  expect(address).toMatch(/^\d+\.\d+\.\d+\.\d+$/)
  await click(rows.first().getByRole('button', { name: 'Block' }))
  const dialog = page.getByRole('dialog', { name: 'Block' })
  await dialog.getByLabel('Reason').fill('scraping')
  await dialog.getByRole('button', { name: 'Block' }).click()
  await dialog.getByText(`${address} is blocked until`).waitFor()
  await dialog.getByRole('link', { name: 'Blocks' }).click()
  const block = page.getByRole('table', { name: 'Blocks' }).locator('tbody tr', { hasText: address })
  await block.getByText('by root: scraping').waitFor()
  await click(block.getByRole('button', { name: 'Lift', exact: true }))
  await page.getByRole('dialog', { name: 'Lift' }).getByRole('button', { name: 'Lift' }).click()
  await page.getByText('No active blocks.').waitFor()
  expect(faults).toEqual([])
  await close()
})

it('a customer sees what is left and when it resets, by a link that support made', async () => {
  const { page, click, faults, close } = await openCounting('/subjects/northwind')
  await click(page.getByRole('button', { name: 'Portal link' }))
  const dialog = page.getByRole('dialog', { name: 'Portal link' })
  await dialog.getByRole('button', { name: 'Portal link' }).click()
  const link = (await dialog.locator('pre').textContent()) ?? ''
  const context = await stack.browser.newContext({ locale: 'en-US@posix' })
  const own = await context.newPage()
  await own.goto(link)
  const left = own.getByRole('region', { name: 'Your limits' }).locator('li', { hasText: 'Units a month' })
  expect(await left.textContent()).toMatch(/of 4,000,000 left this month.*resets .+\(in /)
  await context.close()
  expect(faults).toEqual([])
  await close()
})

it('a lower size says at once whom it would refuse, typed or dragged, and is applied from there', async () => {
  const { page, faults, close } = await openCounting('/policy?kind=limits&name=trial-minute')
  const panel = page.getByRole('region', { name: 'Peaks, last 7 days' })
  const size = panel.getByRole('spinbutton', { name: 'Size' })
  await size.fill('300')
  const sentence = panel.getByRole('status')
  await expect
    .poll(() => sentence.textContent())
    .toMatch(/^At 300, .+ would be refused [\d,]+ (?:more|fewer) times? in 7 days, mostly on /)
  const refused = panel.getByRole('table', { name: 'Customers' }).locator('tbody tr')
  expect(await refused.count()).toBeGreaterThan(0)

  await panel.getByRole('button', { name: 'Reset to 900' }).click()
  const grip = await panel.locator('.grip').boundingBox()
  if (grip === null) throw new Error('the line has no place')
  await page.mouse.move(grip.x + 200, grip.y + grip.height / 2)
  await page.mouse.down()
  await page.mouse.move(grip.x + 210, grip.y + grip.height / 2 + 60, { steps: 6 })
  await page.mouse.up()
  const dragged = Number(await size.inputValue())
  expect(dragged).toBeLessThan(900)
  await expect.poll(() => sentence.textContent()).toMatch(new RegExp(`^At ${dragged}, .+ in 7 days`))

  await panel.getByRole('button', { name: `Apply ${dragged}` }).click()
  const dialog = page.getByRole('dialog', { name: `Apply ${dragged}` })
  await dialog.getByRole('button', { name: `Apply ${dragged}` }).click()
  await dialog.getByText('Applied within a second.').waitFor()
  const sizeNow = async () => (await stack.api<{ size: number }>('GET /v1/limits/trial-minute')).size
  expect(await sizeNow()).toBe(dragged)

  await dialog.getByRole('link', { name: 'History' }).click()
  await page.locator('tbody tr', { hasText: 'trial-minute' }).first().getByRole('link').first().click()
  await page.getByRole('button', { name: 'Revert' }).click()
  await page.getByRole('dialog', { name: 'Revert' }).getByRole('button', { name: 'Revert' }).click()
  await page.getByText('Reverted within a second.').waitFor()
  expect(await sizeNow()).toBe(900)
  expect(faults).toEqual([])
  await close()
})
