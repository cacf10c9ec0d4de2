import { expect, test } from 'vitest'
import { noRouteLimits, type Route } from '../policy.ts'
import { parseMatch } from '../reader/read-routes.ts'
import { createRouteMatcher, unmatchedRoute } from './match-route.ts'

function routes(...templates: string[]): Route[] {
  return templates.map((template) => {
    const match = parseMatch(template)
    if (match === undefined) throw new Error(`not a route: ${template}`)
    return { ...match, cost: 1, costFrom: undefined, upstream: undefined, limits: noRouteLimits }
  })
}

const table = routes(
  'POST /v1/search',
  'GET /v1/search',
  '* /v1/*',
  'GET /v1/users/:id',
  'GET /v1/users/me',
  '* /v1/users/:id/keys',
  'DELETE /v1/users/:id/*',
  '* /files/*',
  'HEAD /status',
  'GET /status',
  'GET /',
)

test.each([
  ['POST', '/v1/search', 'POST /v1/search'],
  ['POST', '/v1/search/', 'POST /v1/search'],
  ['HEAD', '/v1/search', 'GET /v1/search'],
  ['HEAD', '/status', 'HEAD /status'],
  ['PUT', '/v1/search', '* /v1/*'],
  ['GET', '/v1/users/me', 'GET /v1/users/me'],
  ['GET', '/v1/users/42', 'GET /v1/users/:id'],
  ['GET', '/v1/users/', '* /v1/*'],
  ['GET', '/v1/users//keys', '* /v1/*'],
  ['PUT', '/v1/users/42', '* /v1/*'],
  ['PUT', '/v1/users/me/keys', '* /v1/users/:id/keys'],
  ['DELETE', '/v1/users/42/keys', '* /v1/users/:id/keys'],
  ['DELETE', '/v1/users/42/keys/7', 'DELETE /v1/users/:id/*'],
  ['DELETE', '/v1/users/42', 'DELETE /v1/users/:id/*'],
  ['GET', '/files', '* /files/*'],
  ['GET', '/files/', '* /files/*'],
  ['GET', '/files/a/b', '* /files/*'],
  ['GET', '/filesystem', undefined],
  ['GET', '/', 'GET /'],
  ['POST', '/', undefined],
  ['GET', '/V1/search', undefined],
  ['GET', '/status/x', undefined],
  ['GET', '/__proto__', undefined],
])('%s %s is the route %s', (method, path, template) => {
  expect(createRouteMatcher(table)(method, path)?.template).toBe(template)
})

test('the order in which routes are written does not matter', () => {
  const match = createRouteMatcher(table.toReversed())
  expect(match('GET', '/v1/users/me')?.template).toBe('GET /v1/users/me')
  expect(match('POST', '/v1/search')?.template).toBe('POST /v1/search')
})

test('a catch-all takes every path, the root included', () => {
  const match = createRouteMatcher(routes('* /*'))
  for (const path of ['/', '/a', '/a/b/', '//', '']) expect(match('GET', path)?.template).toBe('* /*')
})

test('a long hostile path costs no more than the depth of the table of routes', () => {
  const match = createRouteMatcher(routes('GET /:a/:b/:c/x', 'GET /:a/b/:c/y', 'GET /a/:b/:c/z'))
  for (let index = 0; index < 1_000; index += 1) expect(match('GET', '/a'.repeat(4_000))).toBeUndefined()
})

test('requests that match nothing share one template', () => {
  expect(unmatchedRoute).toMatchObject({
    template: '*',
    cost: 1,
    costFrom: undefined,
    upstream: undefined,
    limits: noRouteLimits,
  })
})

const verbs = routes(
  'POST /v1/models/:model:generateContent',
  '* /v1/models/:model:countTokens',
  'GET /v1/models/:model',
  'POST /v1/models/tuned:generateContent',
  'GET /v1/models/:model:export/parts/:part',
  'POST /v1/models:batch',
)

test.each([
  ['POST', '/v1/models/gemini-pro:generateContent', 'POST /v1/models/:model:generateContent'],
  ['POST', '/v1/models/gemini-pro:generateContent/', 'POST /v1/models/:model:generateContent'],
  ['POST', '/v1/models/gemini-pro%3AgenerateContent', 'POST /v1/models/:model:generateContent'],
  ['POST', '/v1/models/a:b:generateContent', 'POST /v1/models/:model:generateContent'],
  ['POST', '/v1/models/tuned:generateContent', 'POST /v1/models/tuned:generateContent'],
  ['GET', '/v1/models/x:countTokens', '* /v1/models/:model:countTokens'],
  ['GET', '/v1/models/x', 'GET /v1/models/:model'],
  ['GET', '/v1/models/x:other', 'GET /v1/models/:model'],
  ['GET', '/v1/models/:generateContent', 'GET /v1/models/:model'],
  ['POST', '/v1/models/x', undefined],
  ['POST', '/v1/models/x:generatecontent', undefined],
  ['GET', '/v1/models/x:export/parts/7', 'GET /v1/models/:model:export/parts/:part'],
  ['GET', '/v1/models/x/parts/7', undefined],
  ['POST', '/v1/models:batch', 'POST /v1/models:batch'],
])('With verbs behind parameters, %s %s is the route %s', (method, path, template) => {
  expect(createRouteMatcher(verbs)(method, path)?.template).toBe(template)
})

test.each(['GET /:a:b:c', 'GET /:a:', 'GET /:a:b%41', 'GET /:1:b', 'GET /:a:*'])('%s is no route', (template) => {
  expect(parseMatch(template)).toBeUndefined()
})
