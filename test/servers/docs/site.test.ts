import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorFacts } from '@weir/core/errors.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, it } from 'vitest'
import { tree } from '../../repo/read-tree.ts'
import { codeMetrics } from '../../repo/rules/names-in-code.ts'
import { openBrowser, openWatchedPage } from '../../support/browser/open-browser.ts'
import { buildSite, deadLinks } from '../../support/docs/built-site.ts'
import { forFile } from '../../support/opened.ts'

/** What people ask, and the page that one of the first three results must be of. */
const questions: Readonly<Record<string, string>> = {
  'why was my request refused': 'why.html',
  'raise a limit': 'policy.html',
  'Redis is down': 'operating.html',
  'lift a block': 'blocks.html',
  'portal token': 'admin-api.html',
  'RateLimit header': 'headers.html',
  'billing system': 'prices.html',
  'webhook signature': 'alerts.html',
  'forward auth nginx': 'integrations/nginx.html',
  corrections: 'check-api.html',
}

const [site, browser] = await Promise.all([forFile(buildSite()), forFile(openBrowser())])
const watched = await openWatchedPage(browser, { origin: site.origin })

it('the site of the documents builds without a dead link, anchor or picture', () => {
  expect(deadLinks(site.folder)).toEqual([])
})

it('its page of names has every error, metric and variable', async () => {
  const html = await readFile(join(site.folder, 'names.html'), 'utf8')
  const names = [...Object.keys(errorFacts), ...codeMetrics(tree), 'WEIR_REDIS_URL', 'WEIR_CONSOLE_PORT']
  expect(names.filter((name) => !html.includes(`#${name}"`))).toEqual([])
})

it('its search finds ten questions in the browser, below a path of any server, and asks nobody else', async () => {
  const { page, faults } = watched
  await page.goto(site.origin + site.base)
  await page.getByRole('button', { name: 'Search' }).click()
  const missed: [string, string[]][] = []
  for (const [question, wanted] of Object.entries(questions)) {
    await page.locator('#localsearch-input').fill(question)
    let links: string[] = []
    const isFound = async () => {
      // The list is of the question before until this one is searched.
      const all = await page
        .locator('a.result')
        .evaluateAll((found) => found.map((one) => one.getAttribute('href') ?? ''))
      links = all.slice(0, 3)
      return links.some((link) => link.split('#')[0] === site.base + wanted)
    }
    if ((await waitUntil(isFound, { deadlineMs: 5_000 })) !== true) missed.push([question, links])
  }
  expect(missed).toEqual([])
  expect(faults).toEqual([])
})
