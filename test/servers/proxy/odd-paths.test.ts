import { expect, it } from 'vitest'
import { openProxy } from './open-proxy.ts'

const key = 'Host: api.test\r\nX-API-Key: acme-key\r\nConnection: close\r\n'

it.each([
  ['/files/caf%e8', '/files/caf%E8'],
  ['/files/a%09b?c=%09', '/files/a%09b?c=%09'],
  ['/v1/se%e8/arch%1F', '/v1/se%E8/arch%1F'],
  ['/a/%E8/..//b%E8', '/a/b%E8'],
  ['/v1/searches%e8', '/v1/searches%E8'],
])('%s, which is no route to any reader, is recorded under * and passed on as %s', async (path, forwarded) => {
  const { raw, seen, records } = await openProxy()
  expect(await raw(`GET ${path} HTTP/1.1\r\n${key}\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
  expect(records).toMatchObject([{ route: '*', cost: 1 }])
  expect(seen.map(({ url }) => url)).toEqual([forwarded])
})

it.each([
  '/v1/search%09',
  '/v1/se%09arch',
  '/v1/search%E8',
  '/v1/%e8search',
  '/%E8v1/search%09',
  '/v1/s%FEarch',
  '/v1/x%E8/../search',
  '/.%09./v1/search',
  '/x/.%E8./v1/search',
  '/%09/v1/search',
  '/v1/%7Fsearch%E8%09',
  '/v1/%24b%E8atch',
  '/x%00',
  '/x%0A/v1/search',
  '/x%0D',
  '/x%c0%af',
  '/x%E0%80%AF',
  '/x%F0%80%80%AF',
  '/x%FE',
  '/x%E8;a',
  '/x%E8%2Fy',
  '/x%E8%5Cy',
  '/x%E8%2541',
  '/x%E8%4',
  '/%E8/%E8/%E8',
  '/x\xe8',
])('%s, which some reader takes for a route or in more ways, is refused with 400', async (path) => {
  const { raw, seen, records } = await openProxy()
  expect(await raw(`GET ${path} HTTP/1.1\r\n${key}\r\n`)).toMatch(/^HTTP\/1\.1 400 /)
  expect([records, seen]).toEqual([[], []])
})
