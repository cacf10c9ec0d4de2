import { findProgram } from '@weir/local-programs/find-program.ts'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { chromiumProgram } from '../programs/test-programs.ts'

/** A page of a browser of its own: no other test has its cookies and storage. */
export interface WatchedPage {
  readonly page: Page
  /** What must not happen on a page: errors in its console, reports of its CSP, and requests to other origins. */
  readonly faults: string[]
  /** What came over the wire so far, with its headers. */
  bytes(): number
  close(): Promise<void>
}

export interface PageOptions {
  /** The console's origin. */
  readonly origin: string
  /** 1440 px if not given. */
  readonly width?: number
  readonly scheme?: 'light' | 'dark'
}

/** Every host but this machine is nowhere, whatever a page asks for; names of `.example` are this machine too. */
const hosts = 'MAP *.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost'

/** A busy machine may take many times what a page usually takes. */
const pageDeadlineMs = 20_000

/** Chromium, without a window. */
export async function openBrowser(): Promise<Browser> {
  const find = () => findProgram(chromiumProgram, { environment: process.env, tell: () => undefined })
  const program = process.env.WEIR_TEST_CHROMIUM || (await find())
  // Chromium's sandbox does not start for root, as in containers.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return chromium.launch({ executablePath: program, args: [...args, `--host-resolver-rules=${hosts}`] })
}

/** Opens an empty page that is watched from its first request on. */
export async function openWatchedPage(browser: Browser, options: PageOptions): Promise<WatchedPage> {
  const { origin, width = 1_440, scheme = 'light' } = options
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: scheme,
    locale: 'en-GB',
    timezoneId: 'UTC',
    permissions: ['clipboard-write'],
  })
  context.setDefaultTimeout(pageDeadlineMs)
  // The page's own policy forbids scripts that are added later.
  await context.addInitScript({ content: axe.source })
  const page = await context.newPage()
  const faults: string[] = []
  let bytes = 0
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`thrown: ${error.message}`))
  page.on('request', (request) => {
    const { protocol, origin: asked } = new URL(request.url())
    if (asked !== origin && protocol !== 'data:') faults.push(`elsewhere: ${request.url()}`)
  })
  const wire = await context.newCDPSession(page)
  await wire.send('Network.enable')
  wire.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength
  })
  return { page, faults, bytes: () => bytes, close: () => context.close() }
}

/** Signs in by the form of the page that is open or is opened. */
export async function signIn(page: Page, url: string, token: string): Promise<void> {
  await page.goto(url)
  // By the keys, as fast as they come: no letter is lost.
  await page.getByLabel('Token').pressSequentially(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByLabel('Time zone').waitFor()
}

/** Waits until every part of the page has its answer. */
export const untilLoaded = (page: Page): Promise<void> =>
  page.locator('main:not(:has([aria-busy=true]))').first().waitFor()

/** What axe finds of serious or critical kind: the rule, and the elements. */
export async function seriousFindings(page: Page): Promise<string[]> {
  const found = await page.evaluate<{
    violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[]
  }>('axe.run(document, { resultTypes: ["violations"] })')
  return found.violations.flatMap(({ id, impact, nodes }) =>
    ['serious', 'critical'].includes(impact)
      ? nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}: ${failureSummary.slice(0, 300)}`)
      : [],
  )
}
