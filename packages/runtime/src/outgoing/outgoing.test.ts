import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createOutgoing, createPublicLookup, isPublicAddress } from './outgoing.ts'

let server: Server
let port: number
let requests = 0
beforeAll(async () => {
  server = createServer((_, response) => {
    requests += 1
    response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  port = (server.address() as AddressInfo).port
})
afterAll(() => new Promise((done) => server.close(done)))

/** Names as an untrusted DNS server would answer them: each time the next of its answers. */
function namesOf(answers: Readonly<Record<string, readonly (readonly string[])[]>>) {
  const asked: string[] = []
  const lookup = createPublicLookup((hostname, _, callback) => {
    const at = asked.filter((name) => name === hostname).length
    asked.push(hostname)
    const addresses = answers[hostname]?.[at] ?? []
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  })
  return { outgoing: createOutgoing({ lookup }), asked }
}

const post = (outgoing: ReturnType<typeof createOutgoing>, url: string, allowPrivate = false) =>
  outgoing.send({ method: 'POST', url, allowPrivate, headers: {}, body: '{}', deadlineMs: 2_000, answerBytesMax: 100 })

describe('addresses that others chose', () => {
  it.each([
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '127.255.255.254',
    '2130706433',
    '0x7f.1',
    '0x7f000001',
    '017700000001',
    '0177.0.0.1',
    '①②⑦.⓪.⓪.①',
    '１２７.0.0.1',
    '0',
    '0.0.0.0',
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    '169.254.169.254',
    '2852039166',
    '100.64.0.1',
    '192.0.0.8',
    '192.0.2.1',
    '192.88.99.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '[::]',
    '[::1]',
    '[::127.0.0.1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::ffff:a9fe:a9fe]',
    '[0:0:0:0:0:ffff:10.0.0.1]',
    '[::ffff:0:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b::169.254.169.254]',
    '[64:ff9b:1::7f00:1]',
    '[2002:7f00:1::]',
    '[2002:a00:1::]',
    '[2001::1]',
    '[2001:db8::1]',
    '[3fff::1]',
    '[5f00::1]',
    '[100::1]',
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[fe80::1]',
    '[ff02::1]',
    '[4000::1]',
    'localhost',
    'localhost.',
    'LOCALHOST',
    '127。0。0。1',
    '127.0.0.1.',
    'user:pass@127.0.0.1',
    '127.0.0.1%2e',
    '[0:0:0:0:0:0:0:1]',
    '[fd00::1]',
  ])('never reach %s', async (host) => {
    const outgoing = createOutgoing()
    // Some resolvers know no name that ends with a dot.
    await expect(post(outgoing, `http://${host}:${port}/`)).rejects.toThrow(/not (a )?public|ENOTFOUND localhost\./)
    await outgoing.close()
    expect(requests).toBe(0)
  })

  it.each([
    ['a private address', ['10.0.0.1']],
    ['the metadata service', ['169.254.169.254']],
    ['a public address and a private one', ['8.8.8.8', '127.0.0.1']],
    ['a mapped one', ['::ffff:127.0.0.1']],
    ['one behind NAT64', ['64:ff9b::7f00:1']],
    ['nothing at all', []],
  ])('never reach a name that is at %s', async (_, addresses) => {
    const { outgoing } = namesOf({ 'hooks.example.com': [addresses] })
    await expect(post(outgoing, `http://hooks.example.com:${port}/`)).rejects.toThrow('which is not a public address')
    await outgoing.close()
  })

  it('are asked for once for each connection, so that a name cannot be another one when it is used than when it was checked', async () => {
    // 192.0.0.0/24 aside, nothing here leads anywhere: the first connection fails, or is given up, at a public address.
    const { outgoing, asked } = namesOf({ 'rebinds.example.com': [['203.0.112.1'], ['127.0.0.1']] })
    const url = `http://rebinds.example.com:${port}/`
    await expect(post(outgoing, url)).rejects.not.toThrow('not public')
    expect(asked).toEqual(['rebinds.example.com'])
    await expect(post(outgoing, url)).rejects.toThrow('127.0.0.1, which is not a public address')
    await outgoing.close()
    expect(requests).toBe(0)
  })

  it('are reached if that is allowed, and their redirects are not followed', async () => {
    const outgoing = createOutgoing()
    expect(await post(outgoing, `http://127.0.0.1:${port}/`, true)).toMatchObject({
      status: 302,
      headers: { location: 'http://127.0.0.1:1/' },
    })
    await outgoing.close()
    expect(requests).toBe(1)
  })
})

describe('a proxy', () => {
  const seen: string[] = []
  let proxy: Server
  let proxyUrl: string
  beforeAll(async () => {
    // The proxy sends every request to our server, whatever its target.
    proxy = createServer((request, response) => {
      seen.push(`${request.method} ${request.url} ${request.headers['proxy-authorization']}`)
      response.writeHead(200).end('by proxy')
    })
    proxy.on('connect', (request, socket) => {
      seen.push(`CONNECT ${request.url}`)
      const there = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
      for (const one of [there, socket]) {
        one.on('error', () => undefined)
        one.on('close', () => [there, socket].map((either) => either.destroy()))
      }
      there.pipe(socket).pipe(there)
    })
    await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
    proxyUrl = `http://weir:pass@127.0.0.1:${(proxy.address() as AddressInfo).port}`
  })
  afterAll(() => {
    proxy.closeAllConnections()
    return new Promise((done) => proxy.close(done))
  })

  it('gets the requests to public names, and resolves them', async () => {
    const outgoing = createOutgoing({ proxyUrl: () => proxyUrl })
    const answer = await post(outgoing, 'http://hooks.example.com/a')
    expect([answer.status, answer.body.toString()]).toEqual([200, 'by proxy'])
    // Behind the tunnel is our server, which speaks no TLS.
    await expect(post(outgoing, 'https://hooks.example.com/b')).rejects.toThrow()
    expect(seen).toEqual(['POST http://hooks.example.com/a Basic d2VpcjpwYXNz', 'CONNECT hooks.example.com:443'])
    await outgoing.close()
  })

  it('is replaced from the next request on', async () => {
    let url = proxyUrl
    const outgoing = createOutgoing({ proxyUrl: () => url })
    seen.length = 0
    await post(outgoing, 'http://hooks.example.com/a')
    url = proxyUrl.replace('weir:pass', 'weir:next')
    await post(outgoing, 'http://hooks.example.com/a')
    expect(seen.map((one) => one.split(' ').at(-1))).toEqual(['d2VpcjpwYXNz', 'd2VpcjpuZXh0'])
    await outgoing.close()
  })

  it('is asked for no address that is not public, and not for what is allowed to be private', async () => {
    const outgoing = createOutgoing({ proxyUrl: () => proxyUrl })
    const before = seen.length
    for (const host of [
      '127.0.0.1',
      '2130706433',
      '169.254.169.254',
      '[::1]',
      'localhost',
      'a.localhost',
      'LOCALHOST.',
    ]) {
      await expect(post(outgoing, `http://${host}:${port}/`)).rejects.toThrow(/not (a )?public/)
    }
    expect((await post(outgoing, `http://127.0.0.1:${port}/`, true)).status).toBe(302)
    expect(seen).toHaveLength(before)
    await outgoing.close()
  })
})

describe('isPublicAddress', () => {
  it.each(['8.8.8.8', '2606:4700:4700::1111', '::ffff:8.8.8.8'])('takes %s', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  it.each(['100:0:0:1::1', '169.254.169.254%eth0', 'localhost', ''])('refuses %s', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})

describe('createPublicLookup', () => {
  it('refuses a name that resolves to this machine, at connect time', async () => {
    await expect(promisify(createPublicLookup())('localhost', {})).rejects.toThrow('which is not a public address')
  })
})
