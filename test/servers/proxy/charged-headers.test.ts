import { describe, expect, it } from 'vitest'
import { openProxy } from './open-proxy.ts'

const identity = '{ keyHeaders: [x-api-key, authorization], trustedHeaders: { from: [10.0.0.0/8], subject: x-user } }'

describe('a Connection header', () => {
  it.each(['X-Units', 'close, x-units', 'keep-alive,X-UNITS', ' x-units ', 'X-Tenant'])(
    'that names what a cost or a scope is read from is refused: %s',
    async (connection) => {
      const { ask, seen, records } = await openProxy({ identity })
      const { status, body } = await ask({ path: '/v1/export', headers: { connection, 'x-units': '0' } })
      expect([status, JSON.parse(body).detail]).toEqual([400, expect.stringContaining('RFC 9110 section 7.6.1')])
      expect([seen, records]).toEqual([[], []])
    },
  )

  it('may name any other header, which then does not reach the upstream', async () => {
    const { ask, seen } = await openProxy({ identity })
    const headers = { connection: 'close, X-Once', 'x-once': 'a', 'x-units': '3' }
    expect((await ask({ path: '/v1/export', headers })).status).toBe(200)
    expect([seen[0]?.headers['x-units'], seen[0]?.headers['x-once']]).toEqual(['3', undefined])
  })
})

describe('another spelling', () => {
  it('of a header that is charged or names the caller does not reach the upstream', async () => {
    const { ask, seen, records } = await openProxy({ identity })
    const twins = ['X_Units', 'X.Units', 'x_units', 'X_API_Key', 'X.API.Key', 'X_User', 'X.Weir.Subject', 'X.Real.IP']
    for (const character of "!#$%&'*+^`|~") twins.push(`X${character}Units`, `X${character}Weir-Subject`)
    const headers = { 'x-units': '1', 'x_other.name': 'b', ...Object.fromEntries(twins.map((name) => [name, '500'])) }
    expect((await ask({ path: '/v1/export', headers })).status).toBe(200)
    expect(seen[0]?.rawHeaders).not.toContain('500')
    expect([records[0]?.cost, seen[0]?.headers['x-units'], seen[0]?.headers['x_other.name']]).toEqual([1, '1', 'b'])
  })

  it('that the policy itself uses is the one that reaches the upstream', async () => {
    const { ask, seen } = await openProxy({ identity: '{ keyHeaders: [api_key, x-api-key] }' })
    await ask({ headers: { api_key: '', 'api-key': 'twin', 'api.key': 'twin' } })
    expect(JSON.stringify(seen[0]?.rawHeaders)).not.toContain('twin')
  })

  it.each([
    '?count=1&Count=500',
    '?count=1;count=500',
    '?x=1;count=500',
    '?count[]=500',
    '?[count]=500',
    '?count%5B0%5D=500',
    '?count%00=500',
    '?count=1&count%00x=500',
    '?+count=500',
    '?%20count=500',
    '?COUNT=500',
    '?count=1&count[]=500',
  ])('of a query parameter that is charged is refused: %s', async (query) => {
    const { ask, seen, records } = await openProxy()
    const { status, body } = await ask({ path: `/v1/lookup${query}` })
    expect([status, JSON.parse(body).type]).toEqual([400, 'urn:weir:problem:cost-unreadable'])
    expect([seen, records]).toEqual([[], []])
  })

  it.each(['?counts=5&count=2', '?a[count]=5&count=2', '?x=count;y=1&count=2', '?count=2&acount=9'])(
    'of no charged parameter is passed on: %s',
    async (query) => {
      const { ask, records } = await openProxy()
      expect((await ask({ path: `/v1/lookup${query}` })).status).toBe(200)
      expect(records[0]?.cost).toBe(2)
    },
  )
})
