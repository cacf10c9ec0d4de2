import { expect, test } from 'vitest'
import { openProxy } from './open-proxy.ts'

const [page, other] = ['https://app.test', 'https://evil.test']
const own = `cors: { origins: [${page}], credentials: true }`
/** An upstream that speaks for itself, too. */
const serve: NonNullable<Parameters<typeof openProxy>[0]>['serve'] = (_, response) =>
  response.writeHead(200, { 'access-control-allow-origin': '*', vary: 'accept' }).end('made')

const preflight = (origin: string, more = {}) => ({
  method: 'OPTIONS',
  path: '/v1/search',
  headers: { origin, 'x-api-key': '', 'access-control-request-method': 'POST', ...more },
})

test('A preflight is answered for the pages that are named, neither decided nor seen by the upstream', async () => {
  const { ask, seen, records } = await openProxy({ upstream: own, serve })
  const asked = await ask(preflight(page, { 'access-control-request-headers': 'x-api-key, content-type' }))
  expect(asked).toMatchObject({ status: 204, body: '' })
  expect(asked.headers).toMatchObject({
    'access-control-allow-origin': page,
    'access-control-allow-credentials': 'true',
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': 'x-api-key, content-type',
    'access-control-max-age': '600',
    vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
  })
  expect((await ask(preflight(page, { expect: '100-continue' }))).headers.connection).toBe('close')
  const refused = await ask(preflight(other))
  expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([204, undefined])
  expect([seen, records]).toEqual([[], []])
})

test.each([
  ['an answer', {}, 200],
  ['a caller without a key', { 'x-api-key': 'wrong' }, 401],
  ['a limit', { 'x-api-key': 'poor-key' }, 429],
  ['a body that says no cost', { 'content-type': 'application/json' }, 400],
  ['an upstream that is gone', { 'x-fail': '1' }, 502],
])('The page can read %s', async (_, headers, status) => {
  const { ask } = await openProxy({
    upstream: own,
    serve: (request, response) => (request.headers['x-fail'] ? request.destroy() : serve?.(request, response)),
  })
  const asking = { method: 'POST', path: status === 400 ? '/v1/bulk' : '/v1/other', body: 'x' }
  if (status === 429) await ask({ ...asking, headers })
  for (const origin of [page, other]) {
    const answer = await ask({ ...asking, headers: { ...headers, origin } })
    const isAllowed = origin === page
    expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([
      status,
      isAllowed ? page : undefined,
    ])
    expect(answer.headers.vary).toMatch(/Origin/)
    expect(answer.headers['access-control-expose-headers'] ?? '').toMatch(isAllowed ? /Retry-After/ : /^$/)
  }
})

test('An answer that no page asked for may be kept for none: it varies by Origin', async () => {
  const { ask } = await openProxy({ upstream: own, serve })
  const { headers } = await ask()
  expect([headers.vary, headers['access-control-allow-origin']]).toEqual(['accept, Origin', undefined])
})

test('With "*" every page may read, without cookies', async () => {
  const { ask } = await openProxy({ upstream: 'cors: { origins: ["*"] }' })
  for (const asking of [preflight(other), { headers: { origin: other } }]) {
    const { headers } = await ask(asking)
    expect([headers['access-control-allow-origin'], headers['access-control-allow-credentials']]).toEqual([
      '*',
      undefined,
    ])
  }
})

test('Without cors a preflight is a request like any other, and the upstream speaks for itself', async () => {
  const { ask, records } = await openProxy({ serve })
  expect((await ask(preflight(page))).status).toBe(401)
  expect((await ask({ headers: { origin: page } })).headers['access-control-allow-origin']).toBe('*')
  expect(records.length).toBe(2)
  const withCors = await openProxy({ upstream: own, serve })
  expect((await withCors.ask({ method: 'OPTIONS', headers: { origin: page } })).status).toBe(200)
  expect(withCors.records.length).toBe(1)
})
