import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { openProxy } from './open-proxy.ts'

countAttempts('Costs that a request states', 'a 4xx, or the upstream gets exactly the value that was charged')

const json = { 'content-type': 'application/json' }
const framingOf = (body: string | Buffer): Record<string, string> => ({
  'content-length': `${Buffer.byteLength(body)}`,
})
const domains = (many: number) => JSON.stringify({ domains: Array.from({ length: many }, (_, n) => `d${n}.test`) })

const chunked = { 'transfer-encoding': 'chunked' }

/** Asks POST /v1/bulk, and tells what was charged, what the upstream read and how it was answered. */
async function bulk(body: string | Buffer, headers: Record<string, string> = {}, framing = framingOf(body)) {
  const bodies: string[] = []
  const { ask, records } = await openProxy({
    serve: async (request, response) => {
      bodies.push(await text(request))
      response.end('made')
    },
  })
  const answer = await ask({ method: 'POST', path: '/v1/bulk', headers: { ...json, ...framing, ...headers }, body })
  return { status: answer.status, type: answer.status === 200 ? '' : JSON.parse(answer.body).type, records, bodies }
}

describe('a cost in a JSON body', () => {
  it.each([
    [domains(500), 500],
    [domains(1), 1],
    [domains(0), 1],
    ['{"domains": 12}', 12],
    ['{"domains": 0}', 0],
    ['{"domains": 1e3}', 1_000],
    ['{"x": {"domains": [1], "domains": [2, 3]}, "y": [{}, "}", "\\"domains\\":"], "domains": [1, 2]}', 2],
    ['{"dom\\u0061ins": [1, 2, 3]}', 3],
    [' \r\n{\t"domains" :[1,\n2] } ', 2],
  ])('of %s is charged, and the very bytes reach the upstream', async (body, cost) => {
    const { status, records, bodies } = await bulk(body)
    expect([status, records[0]?.cost, bodies]).toEqual([200, cost, [body]])
  })

  it('reaches the upstream chunked when it came chunked or not: the bytes are the same', async () => {
    const { status, bodies } = await bulk(domains(5), {}, chunked)
    expect([status, bodies]).toEqual([200, [domains(5)]])
  })

  it.each([
    ['nothing', ''],
    ['no JSON', '{"domains": ['],
    ['two values', '{"domains": [1]} {"domains": [1, 2]}'],
    ['no such member', '{"domain": [1]}'],
    ['a text', '{"domains": "500"}'],
    ['null', '{"domains": null}'],
    ['an object', '{"domains": {"length": 1}}'],
    ['a negative number', '{"domains": -1}'],
    ['a broken number', '{"domains": 1.5}'],
    ['a number beyond all counting', '{"domains": 9007199254740993}'],
    ['more than a request may cost', '{"domains": 1000000001}'],
    ['an endless number', '{"domains": 1e999}'],
    ['the member twice', '{"domains": [1], "domains": [1, 2, 3]}'],
    ['the member twice, once escaped', '{"domains": [1], "dom\\u0061ins": [1, 2, 3]}'],
    ['the member in two cases', '{"domains": [1], "Domains": [1, 2, 3]}'],
    ['the member with a letter that Go takes for s', '{"domains": [1], "domain\u017f": [1, 2, 3]}'],
    ['the member before a NUL', '{"domains\\u0000x": [1, 2, 3], "domains": [1]}'],
    ['the member with half a surrogate pair', '{"domains\\ud800": [1, 2, 3], "domains": [1]}'],
    ['a member of the prototype', '{"__proto__": {"domains": [1]}}'],
    ['a byte order mark', '\ufeff{"domains": [1]}'],
    ['what is no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['UTF-16', Buffer.from('{"domains": [1]}', 'utf16le')],
    ['brackets without end', '['.repeat(60_000)],
    ['the member in capitals with a control character', '{"domains": [1], "DOMAI\\u001fNS": 5}'],
  ])('that is %s gives 400; 1 unit is charged and nothing passed on', async (_, body) => {
    const { status, type, records, bodies } = await bulk(body)
    expect([status, type, bodies]).toEqual([400, 'urn:weir:problem:cost-unreadable', []])
    expect(records).toMatchObject([{ outcome: 'allow', cost: 1 }])
  })

  it.each(['no JSON', domains(1)])(
    'that is read in vain counts in limits, and beyond one it is 429 whether the next body (%s) says a cost or not',
    async (body) => {
      const { ask, records } = await openProxy()
      const statuses: number[] = []
      for (const sent of ['no JSON', body]) {
        const asked = { method: 'POST', path: '/v1/bulk', headers: { ...json, 'x-api-key': 'poor-key' }, body: sent }
        const { status, headers } = await ask(asked)
        expect(headers).toHaveProperty('weir-decision')
        statuses.push(status)
      }
      expect(statuses).toEqual([400, 429])
      expect(records).toMatchObject([{ outcome: 'allow' }, { outcome: 'deny', reason: 'limit' }])
    },
  )

  it.each([
    ['by its length', undefined],
    ['as it comes', chunked],
  ])('beyond 64 kB gives 413, known %s', async (_, framing) => {
    const body = JSON.stringify({ domains: [1], pad: 'a'.repeat(69_976) })
    const { status, records, bodies } = await bulk(body, {}, framing)
    expect([status, records, bodies]).toEqual([413, [], []])
  })

  it('that is compressed gives 415', async () => {
    const { status, records } = await bulk(domains(3), { 'content-encoding': 'gzip' })
    expect([status, records]).toEqual([415, []])
  })

  it('of an unauthenticated request is not even read', async () => {
    const { raw, records } = await openProxy()
    const head = 'POST /v1/bulk HTTP/1.1\r\nHost: api.test\r\nExpect: 100-continue\r\nContent-Length: 50\r\n\r\n'
    expect(await raw(head)).toMatch(/^HTTP\/1\.1 401 /)
    expect(records).toMatchObject([{ reason: 'unauthorized' }])
  })

  it('is asked for with 100 Continue where the client waits for it', async () => {
    const { ask, records } = await openProxy()
    const body = domains(4)
    const headers = { ...json, expect: '100-continue', 'content-length': `${body.length}` }
    const answer = await ask({ method: 'POST', path: '/v1/bulk', headers, body })
    expect([answer.status, records[0]?.cost]).toEqual([200, 4])
  })
})

describe('a cost in a query parameter or header', () => {
  it.each([
    ['/v1/lookup?count=7', {}, 7],
    ['/v1/lookup?x=1&co%75nt=7', {}, 7],
    ['/v1/lookup?count=007', {}, 7],
    ['/v1/lookup', {}, 1],
    ['/v1/export', { 'x-units': '12' }, 12],
    ['/v1/export', { 'X-UNITS': ' 12 ' }, 12],
    ['/v1/export', {}, 1],
  ])('%s with %o costs %i', async (path, headers, cost) => {
    const { ask, records } = await openProxy()
    expect((await ask({ path, headers: headers as Record<string, string> })).status).toBe(200)
    expect(records[0]?.cost).toBe(cost)
  })

  it.each<[string, Record<string, string | string[]>]>([
    ['/v1/lookup?count=1&count=500', {}],
    ['/v1/lookup?count=1&%63ount=500', {}],
    ['/v1/lookup?count=1&%u0063ount=500', {}],
    ['/v1/lookup?%u0063ount=500', {}],
    ['/v1/lookup?count=1&count%E8=500', {}],
    ['/v1/lookup?count=', {}],
    ['/v1/lookup?count=-1', {}],
    ['/v1/lookup?count=1.5', {}],
    ['/v1/lookup?count=1e9', {}],
    ['/v1/lookup?count=0x10', {}],
    ['/v1/lookup?count=99999999999999999999', {}],
    ['/v1/lookup?count=1%00', {}],
    ['/v1/export', { 'x-units': '' }],
    ['/v1/export', { 'x-units': ['1', '500'] }],
    ['/v1/export', { 'x-units': '1, 500' }],
    ['/v1/export', { 'x-units': '٣' }],
  ])('%s with %o gives 400; nothing is charged', async (path, headers) => {
    const { ask, raw, records, seen } = await openProxy()
    const answer =
      headers['x-units'] === '٣'
        ? await raw(
            `GET ${path} HTTP/1.1\r\nHost: api.test\r\nX-API-Key: acme-key\r\nConnection: close\r\nX-Units: \xd9\xa3\r\n\r\n`,
          )
        : (await ask({ path, headers })).body
    expect(answer).toContain('urn:weir:problem:cost-unreadable')
    expect([records, seen]).toEqual([[], []])
  })
})
