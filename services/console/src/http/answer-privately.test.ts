import { expect, it } from 'vitest'
import { openConsole } from '../testing/open-console.ts'

it('Every answer of the API and of sessions is for its caller alone, unless its route says how it may be kept', async () => {
  const { app, ask, applyFile } = openConsole()
  const paths = ['/session']
  app.addHook('onRoute', ({ url, method }) => void (method === 'GET' && /^\/v1\//.test(url) && paths.push(url)))
  await applyFile()
  for (const path of paths.filter((one) => !one.endsWith('/stream'))) {
    const { headers } = await ask(path.replace(/:\w+/, 'acme'))
    expect([path, headers['cache-control']]).toEqual([path, 'private, no-store'])
    expect([path, headers.vary]).toEqual([path, expect.stringContaining('Authorization, X-API-Key, Cookie')])
  }
  expect(paths.length).toBeGreaterThan(20)
  expect((await ask('/%761/usage')).headers['cache-control']).toBe('private, no-store')
})
