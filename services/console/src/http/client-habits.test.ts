import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { openWithPolicy } from '../testing/open-console.ts'

const json = { 'content-type': 'application/json' }

test.each([
  ['DELETE /v1/subjects/acme/portal', json, '', 204],
  ['DELETE /v1/subjects/acme/portal', { ...json, 'content-length': '0' }, '', 204],
  ['DELETE /v1/subjects/acme/portal', { 'content-type': 'application/x-www-form-urlencoded' }, '', 204],
  ['DELETE /v1/subjects/acme/portal/', {}, '', 204],
  ['POST /v1/subjects/acme/portal', json, '', 201],
  ['POST /v1/subjects/acme/portal/', { 'content-type': 'Application/JSON;charset=UTF-8' }, '{}', 201],
  ['POST /v1/subjects/acme/portal', { ...json, 'content-encoding': 'identity' }, '{}', 201],
  ['POST /v1/subjects/acme/portal', { ...json, 'content-encoding': 'gzip' }, gzipSync('{}'), 415],
  ['PUT /v1/plans/z', json, '', 400],
  ['PUT /v1/usage/', {}, '', 405],
  ['GET /v1/usage/', json, '', 200],
  ['HEAD /v1/usage', {}, '', 200],
  ['GET /v1/usage//', {}, '', 404],
] as const)('%s with %j is %s', async (request, headers, payload, status) => {
  const { app } = await openWithPolicy()
  const [method = '', url = ''] = request.split(' ')
  const answer = await app.inject({
    method: method as 'GET',
    url,
    headers: { authorization: 'Bearer token', ...headers },
    ...(payload === '' ? {} : { payload }),
  })
  expect([answer.statusCode, method === 'HEAD' ? answer.body : '']).toEqual([status, ''])
  if (status === 405) expect(answer.headers.allow).toBe('GET, HEAD, POST')
})
