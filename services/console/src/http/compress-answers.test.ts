import { gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { openWithPolicy, smallPolicy } from '../testing/open-console.ts'

it('compresses long answers to questions for those that accept it, and none that may hold a secret', async () => {
  const { ask } = await openWithPolicy({})
  const headers = { 'accept-encoding': 'gzip, br' }
  const plain = await ask('/openapi.json')
  const zipped = await ask('/openapi.json', { headers })
  expect([plain.headers['content-encoding'], zipped.headers['content-encoding']]).toEqual([undefined, 'gzip'])
  expect(zipped.headers.vary).toBe('Accept-Encoding')
  const none = await ask('/openapi.json', { headers: { 'accept-encoding': 'br, gzip;q=0' } })
  expect([none.body, none.headers['content-encoding']]).toEqual([plain.body, undefined])
  expect(gunzipSync(zipped.rawPayload).toString()).toBe(plain.body)
  expect((await ask('/v1/subjects/acme', { headers })).headers['content-encoding']).toBeUndefined()
  const subjects = Array.from({ length: 100 }, (_, at) => `  customer-${at}: { plan: free }\n`).join('')
  const change = await ask('PUT /v1/policy?dry_run=true', {
    body: smallPolicy.replace('endpoints:', `${subjects}endpoints:`),
    headers,
  })
  expect([change.statusCode, change.body.length > 5_000, change.headers['content-encoding']]).toEqual([
    200,
    true,
    undefined,
  ])
})
