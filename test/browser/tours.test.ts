import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { untilLoaded } from '../support/browser/open-browser.ts'
import { refusingKinds, startPageStack } from '../support/browser/page-stack.ts'
import { forFile } from '../support/opened.ts'

const stack = await forFile(startPageStack())

const textOf = async (page: Page) => (await page.locator('main').textContent()) ?? ''

it('point 1: after a fresh start the page makes a key for the true address, and shows the first decision within two seconds', async () => {
  const { page, faults, close } = await stack.open()
  await page.getByRole('main').getByLabel('Subject').selectOption('acme')
  await page.getByRole('button', { name: 'New key' }).click()
  const dialog = page.getByRole('dialog', { name: 'New key' })
  await dialog.getByRole('button', { name: 'New key' }).click()
  const key = (await dialog.locator('pre').textContent()) ?? ''
  await dialog.getByRole('button', { name: 'Done' }).click()
  expect(await page.locator('pre').textContent()).toBe(`curl -i ${stack.weir.line.ingress}/ -H 'X-API-Key: ${key}'`)
  expect((await fetch(stack.weir.line.ingress, { headers: { 'x-api-key': key } })).status).toBe(200)
  await page.locator('.figure', { hasText: /^1\s*allowed$/ }).waitFor({ timeout: 2_000 })
  await page.getByText(/Counted until/).waitFor()
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
  await page.getByLabel('Find a subject').fill(pasted)
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
    const [, wait = ''] = /Would have allowed it: waiting ([^·]+)/.exec(text) ?? []
    // One wait, in the sentence and in what would have helped.
    expect([kind, text]).toEqual([kind, expect.stringContaining(`allowed ${wait.trim()} later`)])
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
  expect(never).toMatch(/the request costs 5, and the limit never allows more than 3 units at once/)
  expect(never).not.toContain('waiting')
  const unknown = await refusedBy('unknown')
  expect(await explain(page, unknown.get('weir-decision') ?? '')).toContain('had no valid credential')
  // An explanation that was asked too early is a 404 of its own, which the console of a browser reports.
  expect(faults.filter((one) => !one.includes('404'))).toEqual([])
  await close()
})

it('a request beyond a limit that degrades is shown as such, in the list and by itself', async () => {
  for (let at = 0; at < 4; at += 1) expect((await stack.ask('soft')).status).toBe(200)
  await stack.untilCounted('soft', 4)
  const { page, faults, close } = await stack.open('/decisions?subject=soft')
  const rows = page.locator('tbody tr')
  await rows.first().waitFor()
  expect(await rows.allTextContents()).toEqual([
    expect.stringContaining('▽ allowed, degraded'),
    ...Array(3).fill(expect.stringContaining('✓ allowed')),
  ])
  await rows.first().getByRole('link').first().click()
  await page.locator('.headline', { hasText: '▽ allowed, degraded' }).waitFor()
  expect(faults).toEqual([])
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
  await page.getByRole('img', { name: 'Decisions, last 24 hours. Arrow keys' }).waitFor()
  await tabTo(page, /^Decisions, last 24 hours. Arrow keys read its values/)
  await page.keyboard.press('ArrowLeft')
  await page
    .locator('[role=status]', { hasText: /^\d+ \w+, \d\d:\d\d(?:, so far)?: [1-9]\d* decisions? allowed/ })
    .waitFor()

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

it('point 8: an error of the policy is shown at its line; the second of two writers sees both versions', async () => {
  const { token } = await stack.api<{ token: string }>('POST /v1/tokens', { name: 'ada', scopes: ['admin'] })
  const [first, second] = [await stack.open('/policy/change', token), await stack.open('/policy/change')]
  const areas = [first.page, second.page].map((page) => page.getByRole('textbox', { name: 'Policy' }))
  for (const area of areas) await expect.poll(() => area.inputValue()).toContain('limits:')
  const [own, other] = areas
  const text = (await own?.inputValue()) ?? ''
  const line = text.split('\n').findIndex((one) => one.includes('size: 50,')) + 1
  await own?.fill(text.replace('size: 50,', 'size: fifty,'))
  await first.page
    .getByRole('alert')
    .getByRole('button', { name: new RegExp(`^${line}:\\d+$`) })
    .waitFor()

  await own?.fill(text.replace('size: 50,', 'size: 60,'))
  const impact = first.page.getByRole('region', { name: 'Impact' })
  await impact.getByText('No subject would be refused more or less often.').waitFor()
  await impact.getByText(/^Replayed: [\d,]+ decisions? of \d+ subjects?, (?:< )?\d+% of all\.$/).waitFor()
  await other?.fill(text.replace('size: 50,', 'size: 70,'))
  for (const { page } of [first, second]) {
    await page.getByRole('button', { name: 'Apply 1 change' }).first().click()
    await page.getByRole('dialog').getByRole('button', { name: 'Apply 1 change' }).click()
  }
  await first.page.getByRole('dialog').getByText('Applied').waitFor()
  const told = second.page.getByRole('alert')
  expect(await told.textContent()).toMatch(/ada changed the policy in the meantime.*size: 50.*size: 60/)
  expect(await second.page.getByRole('region', { name: 'Diff' }).textContent()).toContain('size: 70')
  expect((await stack.api<{ size: number }>('GET /v1/limits/day')).size).toBe(60)
  await told.getByRole('button', { name: /^Keep mine/ }).click()
  await second.page.getByRole('button', { name: 'Apply 1 change' }).first().click()
  await second.page.getByRole('dialog').getByRole('button', { name: 'Apply 1 change' }).click()
  await second.page.getByRole('dialog').getByText('Applied').waitFor()
  expect((await stack.api<{ size: number }>('GET /v1/limits/day')).size).toBe(70)
  await first.page.goto(`${stack.console}/changes`)
  await first.page.locator('tbody tr', { hasText: 'ada' }).first().waitFor()
  await first.close()
  await second.close()
})

it('the limit of an explanation leads to its settings, which are changed there; what another has changed is not overwritten', async () => {
  const headers = await refusedBy('fixed')
  const { page, close } = await stack.open()
  await explain(page, headers.get('weir-decision') ?? '')
  const limits = page.getByRole('table', { name: 'Limits at the time' })
  await limits.getByRole('link', { name: 'fixed', exact: true }).first().click()
  const settings = page.getByRole('region', { name: 'fixed' })
  await settings.getByText('1h').waitFor()
  const other = await stack.open('/policy?kind=limits&name=fixed')
  const grow = async ({ page: of }: { page: Page }, size: number) => {
    await of.getByRole('button', { name: 'Change', exact: true }).first().click()
    await of.getByText('All settings, as JSON').click()
    const text = of.getByLabel('Settings of fixed, as JSON')
    await text.fill((await text.inputValue()).replace('"size": 3', `"size": ${size}`))
    await of.getByRole('dialog').getByRole('button', { name: 'Change', exact: true }).click()
  }
  await other.page.getByRole('region', { name: 'fixed' }).getByText('1h').waitFor()
  await grow({ page }, 4)
  await page.getByRole('dialog').getByText('Every ingress applies it within a second').waitFor()
  await grow(other, 5)
  await other.page.getByRole('alert').getByText('It has changed in the meantime').waitFor()
  expect((await stack.api<{ size: number }>('GET /v1/limits/fixed')).size).toBe(4)
  await other.close()
  await close()
})

it('the first subjects stand with their largest routes below them, each route counted once', async () => {
  await stack.ask('acme')
  await stack.untilCounted('acme', 1)
  const { page, faults, close } = await stack.open('/usage?by=subject%2Croute&top=5&subject=acme')
  const rows = page.getByRole('region', { name: 'By subject and route, top 5' }).locator('tbody tr')
  await rows.filter({ hasText: 'acme' }).waitFor()
  const texts = await rows.allTextContents()
  const at = texts.findIndex((text) => text.startsWith('acme'))
  expect([texts[at], texts[at + 1]]).toEqual([
    expect.stringMatching(/^acmeall/),
    expect.stringMatching(/^no matching route/),
  ])
  expect(faults).toEqual([])
  await close()
})

it('point 9: a new key is shown once, and neither after Back nor after loading again; copying it makes no other', async () => {
  const { page, faults, close } = await stack.open('/subjects/bolt?tab=keys')
  await page.getByRole('button', { name: 'New key' }).click()
  const dialog = page.getByRole('dialog', { name: 'New key' })
  await dialog.getByRole('button', { name: 'New key' }).click()
  const key = (await dialog.locator('pre').textContent()) ?? ''
  expect(key.length).toBeGreaterThan(20)
  const keys = async () => (await stack.api<{ items: object[] }>('GET /v1/keys?subject=bolt')).items.length
  const made = await keys()
  await dialog.getByRole('button', { name: 'Copy' }).click()
  await dialog.getByRole('button', { name: 'Copied' }).waitFor()
  await untilLoaded(page)
  expect([await dialog.locator('pre').textContent(), await keys()]).toEqual([key, made])
  const heights = [/^Cop/, 'Done'].map((name) => dialog.getByRole('button', { name }).boundingBox())
  const [copied, done] = await Promise.all(heights)
  expect([copied?.y, copied?.height]).toEqual([done?.y, done?.height])
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
