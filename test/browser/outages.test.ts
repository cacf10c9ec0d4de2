import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { untilLoaded } from '../support/browser/open-browser.ts'
import { startPageStack } from '../support/browser/page-stack.ts'
import { forFile } from '../support/opened.ts'
import { until } from '../support/until.ts'

const stack = await forFile(startPageStack())
await stack.ask('acme')
await stack.untilCounted('acme', 1)

/** Panels ask every 15 s, and the console waits for a server for up to 30 s. */
const noticedMs = 60_000

const panelOf = (page: Page, name: string) => page.getByRole('region', { name })
const says = (page: Page, panel: string, text: RegExp) =>
  panelOf(page, panel).getByText(text).first().waitFor({ timeout: noticedMs })
const isOver = (page: Page, panel: string, text: RegExp) =>
  panelOf(page, panel).getByText(text).first().waitFor({ state: 'detached', timeout: noticedMs })

async function whileStopped(name: string, run: () => Promise<void>): Promise<void> {
  const pid = (await stack.weir.state()).pids[name] ?? 0
  process.kill(pid, 'SIGSTOP')
  try {
    await run()
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

it('point 7: without ClickHouse the panels of usage say so and keep what they had; then they go on by themselves', async () => {
  const { page, close } = await stack.open()
  await says(page, 'Most units', /^acme$/)
  await whileStopped('clickhouse', async () => {
    await says(page, 'Most units', /No answer/)
    await says(page, 'Most units', /^as of /)
    await says(page, 'Most units', /^acme$/)
    await page.getByRole('link', { name: 'Policy', exact: true }).click()
    await page.getByRole('cell', { name: 'day', exact: true }).waitFor()
    await page.goBack()
  })
  await says(page, 'Most units', /^acme$/)
  await isOver(page, 'Most units', /No answer/)
  await close()
})

it('point 7: without Redis the health says so, and usage goes on', async () => {
  const { page, close } = await stack.open()
  await says(page, 'Status', /Redis answers/)
  await whileStopped('redis', async () => {
    await says(page, 'Status', /^✕ /)
    await says(page, 'Most units', /^acme$/)
  })
  await says(page, 'Status', /Redis answers/)
  await close()
})

it('point 7: without Kafka the health names what waits, and usage goes on', async () => {
  const { page, close } = await stack.open()
  await untilLoaded(page)
  // On a busy machine a process may have answered too late just now.
  const faults = panelOf(page, 'Status').locator('.fault')
  await expect.poll(() => faults.count(), { timeout: noticedMs }).toBe(0)
  await whileStopped('kafka', async () => {
    await faults.first().waitFor({ timeout: noticedMs })
    await says(page, 'Most units', /^acme$/)
  })
  await faults.first().waitFor({ state: 'detached', timeout: noticedMs })
  await close()
})

it('point 7: a console that was started again asks for the token, and shows the page that was open', async () => {
  const { page, close } = await stack.open('/system')
  const before = (await stack.weir.state()).pids.console ?? 0
  process.kill(before, 'SIGKILL')
  await page.getByLabel('Token').waitFor({ timeout: noticedMs })
  expect(new URL(page.url()).pathname).toBe('/system')
  const isBack = async () => (await fetch(`${stack.console}/openapi.json`).catch(() => undefined))?.ok
  await until(isBack, noticedMs)
  await page.getByLabel('Token').fill(stack.weir.line.adminToken)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: 'System' }).waitFor()
  await page.getByText('Counted until').waitFor()
  await close()
})
