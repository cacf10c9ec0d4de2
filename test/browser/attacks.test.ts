import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, expect, it } from 'vitest'
import { openWatchedPage, untilLoaded } from '../support/browser/open-browser.ts'
import { startPageStack } from '../support/browser/page-stack.ts'
import { forFile } from '../support/opened.ts'

const stack = await forFile(startPageStack())
const foreign = createServer((_, reply) =>
  reply.setHeader('content-type', 'text/html').end('<!doctype html><title>x</title>'),
)
await new Promise<void>((done) => foreign.listen(0, '127.0.0.1', done))
afterAll(() => void foreign.close())

/** Asks from within a page, with its cookies; the status, or `failed`. */
const askFrom = (page: Page, method: string, url: string, headers: object = {}) => {
  const options = JSON.stringify({ method, headers, credentials: 'include' })
  return page.evaluate<number | string>(
    `fetch(${JSON.stringify(url)}, ${options}).then(one => one.status, () => 'failed')`,
  )
}

/** A row of the table of attempts: what was tried, and what it got. */
const tell = (attempt: string, got: unknown) => process.stdout.write(`| ${attempt} | ${JSON.stringify(got)} |\n`)

/** Texts that are markup, formulas, or larger than any place for them. */
const names = {
  markup: '<img/src=x/onerror=document.title="owned">',
  formula: `=cmd|'/C,calc'!A1`,
  link: 'javascript:document.title="owned"',
  long: `${'n'.repeat(127)}<`,
}

it('point 10: names with markup are text on every page that shows them, and safe in CSV', async () => {
  for (const subject of Object.values(names)) {
    const answer = await fetch(`${stack.weir.line.api}/v1/check`, {
      method: 'POST',
      headers: { authorization: 'Bearer gateway-token', 'content-type': 'application/json' },
      body: JSON.stringify({ subject, route: '/search', cost: 45 }),
    })
    expect([subject, answer.status]).toEqual([subject, 200])
    await stack.untilCounted(subject, 1)
  }
  const { page, faults, close } = await stack.open('/', undefined, { width: 380 })
  const paths = ['/', '/usage?by=subject', '/subjects', '/decisions', '/alerts', '/blocks']
  paths.push(...Object.values(names).map((one) => `/subjects/${encodeURIComponent(one)}`))
  for (const path of paths) {
    await page.goto(stack.console + path)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await untilLoaded(page)
    if (/usage|subjects$|decisions/.test(path)) await page.getByText(names.markup).first().waitFor()
    const elements = await page.locator('img, iframe, main script, [href^="javascript:"]').count()
    const title = await page.title()
    const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    tell(`stored names with markup on ${path.slice(0, 60)}`, { elements, title: title.slice(0, 40), tooWidePx: wide })
    expect([path, elements]).toEqual([path, 0])
    expect([path, title]).not.toEqual([path, 'owned'])
    const widest = `[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest('.scroll')).map((one) => one.outerHTML.slice(0, 120)).slice(-4)`
    expect([path, wide, wide > 0 && (await page.evaluate(widest))]).toEqual([path, 0, false])
  }
  expect(faults.filter((one) => !one.includes('404'))).toEqual([])
  await close()
  const headers = { authorization: `Bearer ${stack.weir.line.adminToken}` }
  const csv = await (await fetch(`${stack.console}/v1/usage?by=subject&step=total&format=csv`, { headers })).text()
  tell(
    'a formula as a name, in CSV',
    csv.split('\n').find((line) => line.includes('cmd|')),
  )
  expect(csv).toContain(`"'=cmd|`)
  expect(csv).not.toMatch(/(?:^|[,"])=cmd/m)
})

it('point 11: a form, a script and a frame of another origin, and a call without the page’s own header, change nothing', async () => {
  const { page, close } = await stack.open()
  const reset = `${stack.console}/v1/subjects/acme/limits/reset`
  const bare = [
    await askFrom(page, 'POST', reset, { 'content-type': 'application/json' }),
    await askFrom(page, 'DELETE', `${stack.console}/v1/subjects/acme`),
  ]
  tell('POST and DELETE of the own page without X-Weir-CSRF', bare)
  expect(bare).toEqual([403, 403])
  // Another port of this machine is the same site: its requests come with the cookie.
  const answers: string[] = []
  page.on('response', (answer) => answers.push(`${answer.request().method()} ${answer.status()}`))
  // A foreign site's come without it.
  const hosts = { '127.0.0.1': 'POST 403', 'foreign.example': 'POST 401' }
  for (const [host, answered] of Object.entries(hosts)) {
    await page.goto(`http://${host}:${(foreign.address() as AddressInfo).port}/`)
    expect([host, await askFrom(page, 'GET', `${stack.console}/v1/policy`)]).toEqual([host, 'failed'])
    expect([host, await askFrom(page, 'DELETE', `${stack.console}/v1/subjects/acme`)]).toEqual([host, 'failed'])
    answers.length = 0
    await page.evaluate(`{
      const form = Object.assign(document.createElement('form'), { method: 'POST', action: ${JSON.stringify(reset)} })
      document.body.append(form)
      form.submit()
    }`)
    await page.waitForURL(reset)
    const got = answers.filter((one) => one.startsWith('POST'))
    tell(`GET and DELETE by script, then a form, from ${host}, another origin`, ['unread', 'failed', ...got])
    expect([host, got]).toEqual([host, [answered]])
  }
  await page.goto(`http://foreign.example:${(foreign.address() as AddressInfo).port}/`)
  await page.evaluate(
    `document.body.append(Object.assign(document.createElement('iframe'), { src: ${JSON.stringify(stack.console)} }))`,
  )
  await expect.poll(() => page.frames().length).toBe(2)
  // Chromium says in its own words that it may not be shown there.
  const framed = await page.frames()[1]?.locator('#page').count()
  tell('the page in a frame of another origin: pages that it shows', framed)
  expect(framed).toBe(0)
  expect((await stack.api<{ plan: string }>('GET /v1/subjects/acme')).plan).toBe('basic')
  await close()
})

it('point 11: a name that was bound to this machine gets neither a session nor data', async () => {
  const rebound = stack.console.replace('127.0.0.1', 'rebound.example')
  const { page, close } = await openWatchedPage(stack.browser, { origin: rebound })
  await page.goto(rebound)
  await page.getByLabel('Token').fill(stack.weir.line.adminToken)
  await page.getByRole('button', { name: 'Sign in' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('This console has a different address for browsers')
  const cookies = await page.context().cookies()
  tell('signing in by a name that was bound to this machine: cookies', cookies)
  expect(cookies).toEqual([])
  await page.context().addCookies([{ name: 'weir', value: 'x'.repeat(43), url: rebound }])
  const read = await askFrom(page, 'GET', `${rebound}/v1/policy`)
  tell('GET /v1/policy by that name, with a cookie', read)
  expect(read).toBe(403)
  await close()
})

it('a link with a portal token, from anywhere, replaces no session and opens none off /me unless the reader agrees', async () => {
  const { token } = await stack.api<{ token: string }>('POST /v1/subjects/acme/portal', { expires_in: '1h' })
  const { page, close } = await stack.open('/')
  const asked: string[] = []
  let agrees = false
  page.on('dialog', (dialog) => {
    asked.push(dialog.message())
    void (agrees ? dialog.accept() : dialog.dismiss())
  })
  const follow = async (path: string) => {
    await page.goto('about:blank')
    await page.goto(`${stack.console}${path}#${token}`)
    await page.locator('main').waitFor()
    return askFrom(page, 'GET', '/v1/policy')
  }
  expect([await follow('/usage'), await follow('/me'), asked.length]).toEqual([200, 200, 2])
  agrees = true
  expect([await follow('/me'), asked.at(-1)]).toEqual([403, 'Sign in with this link instead of as root?'])
  await close()
})

it('a customer’s session shows its own page whatever path it opens, and gets nothing of the operators’', async () => {
  await stack.ask('acme')
  await stack.ask('bolt')
  await stack.untilCounted('acme', 1)
  await stack.untilCounted('bolt', 1)
  const { token } = await stack.api<{ token: string }>('POST /v1/subjects/acme/portal', { expires_in: '1h' })
  for (const credential of [token, 'acme-key']) {
    const { page, faults, close } = await stack.open('/me', credential)
    for (const path of ['/', '/live', '/subjects/bolt', '/policy', '/policy/change', '/keys', '/tokens', '/system']) {
      await page.goto(stack.console + path)
      await page.getByRole('heading', { level: 1, name: 'acme' }).waitFor()
      await untilLoaded(page)
      expect([path, await page.locator('body').textContent()]).toEqual([path, expect.not.stringContaining('bolt')])
      expect([path, await page.getByRole('navigation').count()]).toEqual([path, 0])
      expect([path, new URL(page.url()).pathname]).toEqual([path, '/me'])
    }
    expect(faults).toEqual([])
    tell(
      `a session by ${credential === token ? 'a portal token' : 'the own key'} at 8 paths of operators`,
      new URL(page.url()).pathname,
    )
    for (const path of [
      '/v1/policy',
      '/v1/keys',
      '/v1/tokens',
      '/v1/status',
      '/v1/changes',
      '/v1/usage?subject=bolt',
    ]) {
      const status = await askFrom(page, 'GET', path)
      tell(`the same session: GET ${path}`, status)
      expect([path, status]).toEqual([path, 403])
    }
    await close()
  }
})
