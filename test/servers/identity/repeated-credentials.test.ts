import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, test } from 'vitest'
import { send } from '../../support/gateways/send.ts'
import { openWeirApps } from '../../support/gateways/weir-apps.ts'
import { forFile } from '../../support/opened.ts'

const policy = `
version: 1
identity: { anonymous: free, trustedProxies: [127.0.0.1/32] }
plans: { free: { limits: [] } }
subjects: { acme: { plan: free, keys: [{ sha256: "${sha256('good')}", id: k1 }] } }
tokens: { asks: { sha256: "${sha256('token')}", scopes: [check] } }
`
const weir = await forFile(openWeirApps(policy))

const repeated: readonly (readonly string[])[] = [
  ['Authorization', 'Bearer good', 'Authorization', 'Bearer nope'],
  ['Authorization', 'Bearer nope', 'Authorization', 'Bearer good'],
  ['Authorization', 'Bearer good', 'Authorization', 'Bearer good'],
  ['Authorization', 'Bearer token', 'Authorization', 'Bearer token'],
  ['Authorization', 'Basic eDp5', 'authorization', 'Bearer good'],
  ['X-API-Key', 'good', 'X-API-Key', 'nope'],
  ['X-API-Key', 'good', 'x-api-key', 'good'],
]
const doors = {
  'the proxy': (headers: readonly string[]) => send(weir.proxy, { headers }),
  '/v1/authorize': (headers: readonly string[]) => send(weir.api, { path: '/v1/authorize/x', headers }),
  ...Object.fromEntries(
    ['/v1/check', '/v1/check/batch', '/v1/settle', '/v1/pause'].map((path) => [
      path,
      (headers: readonly string[]) =>
        send(weir.api, { method: 'POST', path, headers: [...headers, 'content-type', 'application/json'] }),
    ]),
  ),
}

test.each(Object.entries(doors))('a credential whose header comes twice is wrong at %s', async (_, ask) => {
  for (const headers of repeated) expect([headers, (await ask(headers)).status]).toEqual([headers, 401])
})
