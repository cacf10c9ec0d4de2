import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { untilLoaded } from '../support/browser/open-browser.ts'
import { type PageStack, refusingKinds, startPageStack } from '../support/browser/page-stack.ts'

let stack: PageStack
beforeAll(async () => {
  stack = await startPageStack()
})
afterAll(() => stack?.close())

const textOf = async (page: Page) => (await page.locator('main').textContent()) ?? ''

it('point 1: after a fresh start the page has three commands, and the first decision within two seconds', async () => {
  const { page, faults, close } = await stack.open()
  const commands = await page.locator('pre').textContent()
  expect(commands?.split('\n')).toHaveLength(3)
  expect((await stack.ask('acme')).status).toBe(200)
  await page.locator('.figure', { hasText: /^1\s*allowed$/ }).waitFor({ timeout: 2_000 })
  expect(faults).toEqual([])
  await close()
})

/** Three requests are admitted, then this refused; the answer's headers. */
async function refusedBy(subject: string, request?: string): Promise<Headers> {
  for (;;) {
    const { status, headers } = await stack.ask(subject, request)
    if (status !== 200) return headers
  }
}

/** Pastes what an answer said into the search, and waits for the explanation. */
async function explain(page: Page, pasted: string): Promise<string> {
  await page.getByRole('searchbox').fill(pasted)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Decision' }).waitFor()
  // What is not counted yet is asked again by hand.
  await expect
    .poll(
      async () => {
        await untilLoaded(page)
        const again = page.getByRole('button', { name: 'Try again' })
        if (await again.isVisible()) await again.click()
        return textOf(page)
      },
      { timeout: 15_000, interval: 500 },
    )
    .toMatch(/Refused/)
  return textOf(page)
}

/** The milliseconds of `59 min 58 s`. */
function msOf(text: string): number {
  const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000 }
  return [...text.matchAll(/([\d.,]+) (ms|s|min|h)\b/g)].reduce(
    (sum, [, number = '', unit = '']) => sum + Number(number.replaceAll(',', '')) * (units[unit] ?? 0),
    0,
  )
}

it('point 4: a pasted Weir-Decision is explained as the script answered, for each algorithm and each reason', async () => {
  const { page, faults, close } = await stack.open()
  for (const kind of refusingKinds) {
    const headers = await refusedBy(kind)
    const text = await explain(page, `Weir-Decision: ${headers.get('weir-decision')}`)
    expect([kind, text]).toEqual([kind, expect.stringContaining(`Refused by ${kind}: `)])
    const [, wait = ''] = /Would have helped: waiting ([^·]+)/.exec(text) ?? []
    const promisedMs = Number(headers.get('retry-after')) * 1_000
    // The answer rounds up to seconds, the page to what one reads.
    expect([kind, wait, Math.abs(msOf(wait) - promisedMs) <= Math.max(1_000, promisedMs / 50)]).toEqual([
      kind,
      wait,
      true,
    ])
  }
  const blocked = await refusedBy('blocking')
  expect(await explain(page, blocked.get('weir-decision') ?? '')).toMatch(
    /Refused by blocking, which blocks the caller because of an earlier refusal.*The block was set by/s,
  )
  const tooLarge = await refusedBy('slide', 'POST /v1/search')
  const never = await explain(page, tooLarge.get('weir-decision') ?? '')
  expect(never).toMatch(/the request costs 5, and the limit never admits more than 3 units at once/)
  expect(never).not.toContain('waiting')
  const nobody = await refusedBy('stranger')
  expect(await explain(page, nobody.get('weir-decision') ?? '')).toContain('had no valid credential')
  // An explanation that was asked too early is a 404 of its own, which the console of a browser reports.
  expect(faults.filter((one) => !one.includes('404'))).toEqual([])
  await close()
})

/** Presses Tab until what has the focus says this. */
async function tabTo(page: Page, wanted: RegExp): Promise<void> {
  const label = '(one => one.getAttribute("aria-label") ?? one.textContent)(document.activeElement)'
  const most = 80
  for (let at = 0; at < most; at += 1) {
    await page.keyboard.press('Tab')
    if (wanted.test(await page.evaluate<string>(label))) return
  }
  throw new Error(`${most} times Tab, and nothing with ${wanted} had the focus`)
}

it('point 5: by keyboard alone a subject is found and a dialog closed where it was opened; a chart says its values', async () => {
  const { page, faults, close } = await stack.open()
  await page.keyboard.press('/')
  await page.keyboard.type('acme')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'acme' }).waitFor()
  await tabTo(page, /^Portal link$/)
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Portal link' }).waitFor()
  expect(await page.evaluate('document.activeElement.closest("dialog") !== null')).toBe(true)
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Portal link')

  await page.keyboard.press('g')
  await page.keyboard.press('o')
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await page.locator('svg.chart').waitFor()
  await tabTo(page, /Arrow keys read its values/)
  await page.keyboard.press('ArrowLeft')
  await page.locator('[role=status]', { hasText: /^\d+ \w+, \d\d:\d\d: [1-9]\d* allowed, \d+ refused$/ }).waitFor()

  await page.keyboard.press('g')
  await page.keyboard.press('s')
  await page.getByRole('heading', { level: 1, name: 'Subjects' }).waitFor()
  await page.getByRole('cell', { name: 'acme' }).waitFor()
  await tabTo(page, /^acme$/)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'acme' }).waitFor()
  expect(faults).toEqual([])
  await close()
})

it('point 8: an error of the policy is shown at its line; the second of two writers is told who was first', async () => {
  const { token } = await stack.api<{ token: string }>('POST /v1/tokens', { name: 'ada', scopes: ['admin'] })
  const [first, second] = [await stack.open('/policy/change', token), await stack.open('/policy/change')]
  const areas = [first.page, second.page].map((page) => page.getByRole('textbox', { name: 'Policy' }))
  for (const area of areas) await expect.poll(() => area.inputValue()).toContain('"limits"')
  const [own, other] = areas
  const text = (await own?.inputValue()) ?? ''
  const line = text.split('\n').findIndex((one) => one.includes('"size": 50')) + 1
  await own?.fill(text.replace('"size": 50', '"size": "fifty"'))
  await first.page
    .getByRole('alert')
    .getByRole('button', { name: new RegExp(`^${line}:\\d+$`) })
    .waitFor()

  await own?.fill(text.replace('"size": 50', '"size": 60'))
  await other?.fill(text.replace('"size": 50', '"size": 70'))
  for (const { page } of [first, second]) {
    await page
      .getByRole('button', { name: /^Apply [1-9]\d* changes$/ })
      .first()
      .click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: /^Apply / }).click()
    await dialog.getByRole('button', { name: 'Done' }).waitFor()
  }
  expect(await second.page.getByRole('dialog').textContent()).toContain('ada has changed the policy meanwhile')
  expect((await stack.api<{ size: number }>('GET /v1/limits/day')).size).toBe(60)
  await first.page.goto(`${stack.console}/changes`)
  expect(await first.page.locator('tbody tr').first().textContent()).toMatch(/ada/)
  await first.close()
  await second.close()
})

it('point 9: a new key is shown once, and neither after Back nor after loading again', async () => {
  const { page, faults, close } = await stack.open('/subjects/bolt?tab=keys')
  await page.getByRole('button', { name: 'New key' }).click()
  const dialog = page.getByRole('dialog', { name: 'New key' })
  await dialog.getByRole('button', { name: 'New key' }).click()
  const key = (await dialog.locator('pre').textContent()) ?? ''
  expect(key.length).toBeGreaterThan(20)
  await dialog.getByRole('button', { name: 'Done' }).click()
  const shows = async () => (await page.content()).includes(key)
  expect(await shows()).toBe(false)
  await page.getByRole('link', { name: 'Keys', exact: true }).first().click()
  await page.goBack()
  await untilLoaded(page)
  expect(await shows()).toBe(false)
  await page.reload()
  await untilLoaded(page)
  expect(await shows()).toBe(false)
  const stored = 'JSON.stringify([localStorage, sessionStorage, document.cookie])'
  expect(await page.evaluate<string>(stored)).not.toContain(key)
  expect(faults).toEqual([])
  await close()
})
