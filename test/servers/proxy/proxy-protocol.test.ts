import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { folderForTest, forTest } from '../../support/opened.ts'
import { createAuthority } from '../../support/servers/certificates.ts'
import { openProxy, overTls } from './open-proxy.ts'

const asked = 'Host: api.test\r\nX-API-Key: acme-key\r\n'
const last = `GET /b HTTP/1.1\r\n${asked}X-Forwarded-For: 9.9.9.9\r\nConnection: close\r\n\r\n`
const identity = '{ trustedProxies: [127.0.0.1] }'
const v2 = Buffer.from('0d0a0d0a000d0a515549540a2111000cc00002070a0000011f900050', 'hex').toString('latin1')

test.each([
  ['version 1', 'PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\n'],
  ['version 2', v2],
])('The address of a header of %s is the peer of every request on the connection', async (_, header) => {
  const { port, seen, records } = await openProxy({ trusts: '127.0.0.1', identity })
  const socket = connect(port, '127.0.0.1')
  // In pieces, the last of which has the first request in it.
  for (const piece of [header.slice(0, 3), header.slice(3, 20)]) {
    socket.write(piece, 'latin1')
    await new Promise((written) => setImmediate(written))
  }
  socket.write(`${header.slice(20)}GET /a HTTP/1.1\r\n${asked}\r\n`, 'latin1')
  await once(socket, 'data')
  socket.write(last)
  expect(await text(socket)).toContain('made')
  const forwarded = seen.map(({ url, headers }) => [url, headers['x-forwarded-for'], headers.forwarded])
  const own = 'for=192.0.2.7;host="api.test";proto=http'
  // The client is no trusted proxy, so what it says of itself is dropped.
  expect(forwarded).toEqual(['/a', '/b'].map((path) => [path, '192.0.2.7', own]))
  expect(records.length).toBe(2)
})

test('With a health check, or a client that has no address, the peer is the balancer', async () => {
  const { raw, seen } = await openProxy({ trusts: '127.0.0.1' })
  for (const header of ['PROXY UNKNOWN\r\n', `${v2.slice(0, 12)}\x20\0\0\0`]) await raw(`${header}${last}`)
  expect(seen.map(({ headers }) => headers['x-forwarded-for'])).toEqual(['127.0.0.1', '127.0.0.1'])
})

test('A trusted peer without a header is closed unanswered; of any other a header is a bad request', async () => {
  const trusted = await openProxy({ trusts: '127.0.0.1' })
  for (const bytes of [last, `PROXY TCP4 x y 1 2\r\n${last}`]) expect(await trusted.raw(bytes)).toBe('')
  expect(trusted.seen).toEqual([])
  const other = await openProxy({ trusts: '192.0.2.1' })
  expect(await other.raw(last)).toMatch(/^HTTP\/1\.1 200 /)
  expect(await other.raw(`PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\n${last}`)).toMatch(/^HTTP\/1\.1 400 /)
})

test('A header stands before the handshake of TLS', async () => {
  const dir = await folderForTest('proxy-protocol')
  const authority = await createAuthority(dir)
  const { certFile, keyFile } = await authority.issue('proxy')
  overTls.files = { tlsCert: certFile, tlsKey: keyFile }
  onTestFinished(() => void delete overTls.files)
  const { port, seen } = await openProxy({ trusts: '127.0.0.1' })
  const socket = connect(port, '127.0.0.1')
  socket.write(v2, 'latin1')
  const secure = connectTls({ socket, ca: await readFile(authority.caFile), host: '127.0.0.1' })
  secure.write(last)
  expect(await text(secure)).toContain('made')
  expect(seen.map(({ headers }) => [headers['x-forwarded-for'], headers['x-forwarded-proto']])).toEqual([
    ['192.0.2.7', 'https'],
  ])
})

test('WEIR_PROXY_PROTOCOL=yes asks the trusted proxies of the policy for one header, whatever address it names', async () => {
  const policy = { version: 1, identity: { trustedProxies: ['127.0.0.1'] } }
  const stack = await forTest(startIngressStack(policy, { WEIR_PROXY_PROTOCOL: 'yes' }))
  const [host, port] = stack.ingress.proxy.replace('http://', '').split(':')
  const said = async (header: string) => {
    const socket = connect(Number(port), host)
    socket.write(`${header}${last}`)
    return (await text(socket)).slice(0, 12)
  }
  for (const address of ['192.0.2.7', '127.0.0.1']) {
    expect(await said(`PROXY TCP4 ${address} 127.0.0.1 1 2\r\n`)).toBe('HTTP/1.1 401')
  }
  expect(await said('')).toBe('')
}, 120_000)
