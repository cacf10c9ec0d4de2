import { expect, test } from 'vitest'
import { openConsole } from '../testing/open-console.ts'
import { portalOrigins } from './portal-pages.ts'

const [page, other] = ['https://app.test', 'https://evil.test']
const allowed = 'access-control-allow-origin'
const asking = (origin: string) => ({
  origin,
  authorization: '',
  'access-control-request-method': 'GET',
  'access-control-request-headers': 'authorization',
})

test('A page of a portal may ask before it reads, and reads answers and refusals; no other may, and no cookie counts', async () => {
  const { app, ask, applyFile } = openConsole({ portalOrigins: [page] })
  await applyFile()
  const inject = (method: 'OPTIONS' | 'GET', headers: object) =>
    app.inject({ method, url: '/v1/usage', headers: { ...headers } })
  const preflight = await inject('OPTIONS', asking(page))
  expect([preflight.statusCode, preflight.headers[allowed]]).toEqual([204, page])
  expect(preflight.headers).toMatchObject({
    'access-control-allow-methods': 'GET, HEAD',
    'access-control-allow-headers': 'Authorization, X-API-Key',
  })
  expect((await inject('OPTIONS', asking(other))).headers[allowed]).toBeUndefined()
  for (const [token, status] of [
    ['token', 200],
    ['wrong', 401],
  ] as const) {
    const answer = await ask('/v1/usage', { token, headers: { origin: page } })
    expect([answer.statusCode, answer.headers[allowed]]).toEqual([status, page])
    expect(answer.headers).not.toHaveProperty('access-control-allow-credentials')
    // No cache has it, so that it need not vary by the page.
    expect(answer.headers['cache-control']).toBe('private, no-store')
    expect((await ask('/v1/usage', { token, headers: { origin: other } })).headers[allowed]).toBeUndefined()
  }
})

test('Without origins a preflight is a request without a credential', async () => {
  const { app } = openConsole()
  const { statusCode, headers } = await app.inject({ method: 'OPTIONS', url: '/v1/usage', headers: asking(page) })
  expect([statusCode, headers[allowed]]).toEqual([401, undefined])
})

test.each([
  ['', []],
  ['https://a.test, http://b.test:8080', ['https://a.test', 'http://b.test:8080']],
  ['https://a.test/', undefined],
  ['*', undefined],
  ['null', undefined],
])('WEIR_PORTAL_ORIGINS=%j', (written, origins) => {
  const found = portalOrigins.parse(written)
  expect('value' in found ? found.value : undefined).toEqual(origins)
})
