import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { untilLoaded } from '../support/browser/open-browser.ts'
import { startPageStack } from '../support/browser/page-stack.ts'
import { fillShowcase, showcaseEnv, showcasePolicy } from '../support/browser/showcase.ts'
import { forFile } from '../support/opened.ts'

const stack = await forFile(startPageStack(showcasePolicy, showcaseEnv))
const settled = await fillShowcase(stack, Date.now())

const spanOf = (page: Page) => {
  const params = new URL(page.url()).searchParams
  return [params.get('from'), params.get('to')].map((one) => Date.parse(one ?? ''))
}

/** A month's chart of units by subject. */
async function openChart(path = '/usage?span=30d') {
  const opened = await stack.open(path)
  const chart = opened.page.locator('.chart').first()
  await chart.locator('canvas').waitFor()
  await untilLoaded(opened.page)
  const box = await chart.locator('.u-over').boundingBox()
  if (box === null) throw new Error('the chart has no size')
  return { ...opened, chart, box }
}

it('a step under the pointer says its values, the highest first, with their unit', async () => {
  const { page, box, faults, close } = await openChart()
  await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2)
  const tooltip = page.locator('.tooltip')
  await tooltip.waitFor()
  const values = (await tooltip.locator('.row > b').allTextContents()).map((text) => {
    expect(text).toMatch(/^[\d,]+ units?$/)
    return Number(text.replaceAll(/\D/g, ''))
  })
  expect(values.length).toBeGreaterThan(3)
  expect(values).toEqual(values.toSorted((a, b) => b - a))
  await page.mouse.move(5, 5)
  await tooltip.waitFor({ state: 'detached' })
  expect(faults).toEqual([])
  await close()
})

it('dragging over steps shows these whole steps alone, which is in the address; Back leads out again', async () => {
  const { page, box, faults, close } = await openChart()
  await page.mouse.move(box.x + box.width * 0.5, box.y + 20)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 5 })
  await page.mouse.up()
  await page.waitForURL(/from=.*to=/)
  const [from = 0, to = 0] = spanOf(page)
  const dayMs = 86_400_000
  expect([from % dayMs, to % dayMs, Math.round((to - from) / dayMs)]).toEqual([
    0,
    0,
    expect.toSatisfy((days: number) => days >= 3 && days <= 5),
  ])
  await page.getByRole('region', { name: /^Units by subject, \d+ \w+, 00:00 – / }).waitFor()
  await page.goBack()
  await page.waitForURL(/span=30d/)
  expect(faults).toEqual([])
  await close()
})

it('by the keyboard a step is read out, steps are chosen, and Enter goes there', async () => {
  const { page, chart, faults, close } = await openChart()
  await chart.focus()
  await page.keyboard.press('End')
  const status = page.locator('.chart-frame [role=status]').first()
  await expect.poll(() => status.textContent()).toMatch(/^\d+ \w+, so far: [\d,]+ units?/)
  await page.keyboard.press('ArrowLeft')
  await expect.poll(() => status.textContent()).toMatch(/^\d+ \w+: [\d,]+ units?/)
  for (let at = 0; at < 2; at += 1) await page.keyboard.press('Shift+ArrowLeft')
  await page.keyboard.press('Enter')
  await page.waitForURL(/from=.*to=/)
  const [from = 0, to = 0] = spanOf(page)
  expect((to - from) / 86_400_000).toBe(3)
  expect(faults).toEqual([])
  await close()
})

it('the legend shows one group alone, and all again; the same values are a table', async () => {
  const { page, box, faults, close } = await openChart()
  const legend = page.locator('.legend').first()
  const first = legend.getByRole('button').first()
  const name = (await first.textContent()) ?? ''
  await first.click()
  await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2)
  expect(await legend.getByRole('button', { pressed: true }).allTextContents()).toEqual([name])
  await first.click()
  expect(await legend.getByRole('button', { pressed: true }).count()).toBe(0)
  await page.locator('.as-table').first().click()
  await page.getByRole('table', { name: 'Units by subject' }).getByRole('columnheader', { name }).waitFor()
  expect(faults).toEqual([])
  await close()
})

it('a moment is three clicks away: from and to with minutes, or a jump; what was chosen is offered again', async () => {
  const { page, faults, close } = await stack.open('/decisions?zone=Europe/Berlin')
  await page.getByLabel('Span', { exact: true }).selectOption({ label: 'from – to…' })
  const dialog = page.getByRole('dialog')
  const at = new Date(Date.now() - 3_600_000)
  const local = at.toLocaleString('sv-SE', { timeZone: 'Europe/Berlin', dateStyle: 'short', timeStyle: 'short' })
  await dialog.getByLabel('Or jump to').fill(local.replace(' ', 'T'))
  await dialog.getByRole('button', { name: 'Show' }).click()
  await page.waitForURL(/from=.*to=/)
  const minute = Math.floor(at.getTime() / 60_000) * 60_000
  expect(spanOf(page)).toEqual([minute - 900_000, minute + 900_000])
  await page.getByLabel('Span', { exact: true }).selectOption('24h')
  await page.waitForURL(/span=24h/)
  await page.getByLabel('Span', { exact: true }).selectOption('0')
  await page.waitForURL(/from=.*to=/)
  expect(spanOf(page)).toEqual([minute - 900_000, minute + 900_000])
  expect(faults).toEqual([])
  await close()
})

it('usage is compared with the days that the column names, a running month with the same part of the other', async () => {
  const { page, faults, close } = await stack.open('/usage?span=month&compare=previous')
  const asked = page.waitForRequest(
    (request) => request.url().includes('/v1/usage?') && request.url().includes('compare='),
  )
  await page.reload()
  const compare = new URL((await asked).url()).searchParams.get('compare')
  const [year = 0, month = 0] = new Date().toISOString().split('-').map(Number)
  expect(compare).toBe(new Date(Date.UTC(year, month - 2, 1)).toISOString().slice(0, 10))
  await page.getByRole('columnheader', { name: /^± 1(?: – \d+)? \w{3}/ }).waitFor()
  expect(faults).toEqual([])
  await close()
})

it('a unit is chosen as what is measured: by its labels, with the total of the API, and the chart says the unit', async () => {
  const { page, faults, close } = await stack.open('/usage?span=30d&order=-denied')
  await page.getByLabel('Measure').selectOption({ label: 'tokens' })
  await page.getByRole('region', { name: /^tokens by subject, / }).waitFor()
  await page.getByLabel('By', { exact: true }).selectOption({ label: 'by model' })
  const list = page.getByRole('region', { name: 'By model, top 20' })
  await list.getByRole('link', { name: 'gpt-5-mini' }).waitFor()
  const params = { unit: 'tokens', by: 'model', step: 'total', from: 'now-30d', order: '-quantity' }
  const { rows, totals } = await stack.api<{
    rows: { model: string; quantity: number }[]
    totals: { quantity: number }
  }>(`GET /v1/usage?${new URLSearchParams(params)}`)
  const shown = await list
    .locator('tbody tr')
    .evaluateAll((all: { cells: { textContent: string }[] }[]) =>
      all.map(({ cells }) => [...cells].slice(0, 2).map((one) => one.textContent)),
    )
  expect(rows.length).toBe(3)
  expect(shown).toEqual(rows.map(({ model, quantity }) => [model, quantity.toLocaleString('en-US')]))
  expect(await list.textContent()).toContain(`Total: ${totals.quantity.toLocaleString('en-US')} tokens`)
  const chart = page.locator('.chart').first()
  await chart.focus()
  await page.keyboard.press('End')
  const status = page.locator('.chart-frame [role=status]').first()
  await expect.poll(() => status.textContent()).toMatch(/[\d,]+ tokens gpt-5,/)
  // Labels are filters as columns are.
  await list.getByRole('link', { name: 'gpt-5-mini' }).click()
  await expect.poll(() => list.locator('tbody tr').count()).toBe(1)
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  await page.reload()
  await untilLoaded(page)
  // A filter of the address is in the first question, before the labels are known.
  const questions = asked.filter((url) => url.includes('/v1/usage?'))
  expect(questions.length).toBeGreaterThan(1)
  for (const url of questions) expect(url).toContain('model=gpt-5-mini')
  await page.getByLabel('Measure').selectOption({ label: 'refused' })
  await page.getByRole('region', { name: /^Refused by subject, / }).waitFor()
  expect(faults).toEqual([])
  await close()
})

it('a metered decision says what it held and used of each unit, how that is known, its meter and its labels', async () => {
  const { page, faults, close } = await stack.open(`/decisions/${settled}`)
  const units = page.getByRole('table', { name: 'Units' })
  await units.waitFor()
  expect(await units.locator('tbody tr').allTextContents()).toEqual(['tokens4,096812', 'output_tokens1,000640'])
  await page.getByText('Used: reported by the response.').waitFor()
  const request = (await page.getByRole('region', { name: 'Request' }).textContent()) ?? ''
  expect(request).toMatch(/Meter\s*chat.*model\s*gpt-5-mini.*team\s*search/s)
  expect(faults).toEqual([])
  await close()
})

it('usage by unit says in words how it is known, in its list, in its filter and under the pointer', async () => {
  const { page, faults, close } = await stack.open('/usage?unit=tokens&by=basis&span=30d')
  const list = page.getByRole('region', { name: 'By basis, top 20' })
  await list.getByRole('link', { name: 'Reported' }).waitFor()
  const names = list.locator('tbody tr td:first-child')
  expect(await names.allTextContents()).toEqual(['Reported', 'Counted'])
  await page.locator('.chart').first().focus()
  await page.keyboard.press('End')
  const status = page.locator('.chart-frame [role=status]').first()
  await expect.poll(() => status.textContent()).toMatch(/[\d,]+ tokens Reported,/)
  await list.getByRole('link', { name: 'Counted' }).click()
  await expect.poll(() => names.allTextContents()).toEqual(['Counted'])
  await page.getByRole('link', { name: 'Basis: Counted' }).waitFor()
  expect(faults).toEqual([])
  await close()
})

it.each([
  ['A subject page', '/subjects/northwind?span=30d', () => stack.weir.line.adminToken],
  [
    'A customer of its own page',
    '/me?span=30d',
    async () => (await stack.api<{ token: string }>('POST /v1/subjects/northwind/portal', {})).token,
  ],
] as const)(
  "%s has the subject's units and no others, with the sums of the API, by labels",
  async (_, path, tokenOf) => {
    const { page, faults, close } = await stack.open(path, await tokenOf())
    const measure = page.getByLabel('Measure')
    await measure.waitFor()
    // Lumen has seconds too.
    const units = ['input_tokens', 'output_tokens', 'tokens']
    expect((await measure.locator('option').allTextContents()).toSorted()).toEqual(['allowed and refused', ...units])
    await measure.selectOption({ label: 'tokens' })
    await page.getByLabel('By', { exact: true }).selectOption({ label: 'by model' })
    const list = page.getByRole('region', { name: 'Breakdown' })
    await list.getByRole('link', { name: 'gpt-5-mini' }).waitFor()
    const params = { unit: 'tokens', subject: 'northwind', by: 'model', step: 'total', from: 'now-30d', top: '20' }
    const { rows, totals } = await stack.api<{
      rows: { model: string; quantity: number }[]
      totals: { quantity: number }
    }>(`GET /v1/usage?${new URLSearchParams(params)}`)
    const shown = await list
      .locator('tbody tr')
      .evaluateAll((all: { cells: { textContent: string }[] }[]) =>
        all.map(({ cells }) => [...cells].slice(0, 2).map((one) => one.textContent)),
      )
    expect(shown).toEqual(rows.map(({ model, quantity }) => [model, quantity.toLocaleString('en-US')]))
    const figures = page.locator('.figures', { hasText: 'records' })
    expect(await figures.textContent()).toContain(`${totals.quantity.toLocaleString('en-US')}tokens`)
    await measure.selectOption({ label: 'allowed and refused' })
    await page.locator('.figures', { hasText: 'refused' }).waitFor()
    expect(faults).toEqual([])
    await close()
  },
)
