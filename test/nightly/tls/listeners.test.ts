import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request } from 'node:https'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { Client, credentials } from '@grpc/grpc-js'
import { ingressVariables } from '@weir/ingress/config.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { checkConfig } from '@weir/runtime/read-config.ts'
import { afterAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { listen } from '../../support/listen.ts'
import { forFile, forTest } from '../../support/opened.ts'
import { readMetric } from '../../support/read-metric.ts'
import { createAuthority } from '../../support/servers/certificates.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { startConsole } from '../../support/start-console.ts'
import { startIngress } from '../../support/start-ingress.ts'
import { until } from '../../support/until.ts'
import { runWeir } from '../../support/weir-up.ts'

let dir: string
/** Answers at once, but for `/slow`, whose answers wait here. */
const slow: ServerResponse[] = []
const upstream = createServer((asked, response) =>
  asked.url === '/slow' ? slow.push(response) : response.end('served'),
)

const kafka = await forFile(startServer(kafkaServer))
await ensureTopics(kafkaOptions(kafka.address), await readTopics())
;({ dir } = kafka)
const policy = {
  version: 1,
  identity: { anonymous: 'visitors' },
  plans: { visitors: { limits: [] } },
  upstreams: { api: { url: `http://127.0.0.1:${await listen(upstream)}`, hosts: ['*'] } },
  subjects: { app: { plan: 'visitors' } },
  tokens: { app: { sha256: sha256('token'), scopes: ['check'] } },
}
await writeFile(`${dir}/weir.yaml`, JSON.stringify(policy))
const servers = await createAuthority(dir, 'servers')
const clients = await createAuthority(dir, 'clients')
const { certFile, keyFile } = await servers.issue('server')
const mine = await clients.issue('client')
const trust: ConnectionOptions = {
  ca: await readFile(servers.caFile),
  cert: await readFile(mine.certFile),
  key: await readFile(mine.keyFile),
}
const environment = {
  WEIR_TLS_CERT: certFile,
  WEIR_TLS_KEY: keyFile,
  WEIR_TLS_CLIENT_CA: clients.caFile,
  WEIR_KAFKA_BROKERS: kafka.address,
  WEIR_REDIS_URL: inject('redisUrl'),
  WEIR_CLICKHOUSE_URL: inject('clickhouseUrl'),
  WEIR_POLICY_FILE: `${dir}/weir.yaml`,
  WEIR_SHARE_PORTS: 'yes',
}
afterAll(async () => {
  upstream.closeAllConnections()
  upstream.close()
})

/** Both processes, with client certificates asked for at every listener. */
async function open(more: Record<string, string> = {}) {
  const ingress = await forTest(startIngress({ ...environment, ...more }))
  const admin = await forTest(startConsole({ ...environment, ...more }))
  const addresses = { ...ingress, console: admin.environment.WEIR_CONSOLE_URL }
  const portOf = (name: Listener) => Number(addresses[name].split(':').at(-1))
  const ports = { proxy: portOf('proxy'), api: portOf('api'), grpc: portOf('grpc'), console: portOf('console') }
  return { ingress, admin, ports, opsOf: (name: Listener) => (name === 'console' ? admin : ingress).ops }
}
type Listener = 'proxy' | 'api' | 'grpc' | 'console'
const listeners: readonly Listener[] = ['proxy', 'api', 'grpc', 'console']

/** The status of one request over HTTP/1.1; rejects when the connection breaks. */
async function ask(name: Listener, port: number, agent: Agent | false, tls = trust): Promise<number> {
  const connection = { ...tls, host: '127.0.0.1', port, agent, signal: AbortSignal.timeout(20_000) }
  const [isApi, path] = [name === 'api', name === 'console' ? '/openapi.json' : '/']
  const headers = { authorization: 'Bearer token', 'content-type': 'application/json' }
  const sent = request({ ...connection, ...(isApi ? { method: 'POST', path: '/v1/check', headers } : { path }) })
  sent.end(isApi ? '{"subject":"app","route":"GET /","peek":true}' : undefined)
  const [answer] = await once(sent, 'response')
  await text(answer)
  return answer.statusCode
}

/** gRPC's health check by hand, over a session that is seen to close. */
function openGrpc(port: number, tls = trust) {
  const session = connectHttp2(`https://127.0.0.1:${port}`, tls)
  session.on('error', () => undefined)
  const path = '/grpc.health.v1.Health/Check'
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' }
  return {
    session,
    isClosed: () => session.closed,
    /** 200 for an answer whose trailers say that all is well. */
    async ask(): Promise<number> {
      const stream = session.request(headers, { signal: AbortSignal.timeout(20_000) })
      stream.resume().end(Buffer.alloc(5))
      // A session that the other side closes ends its streams without an error.
      const [trailers] = await Promise.race([once(stream, 'trailers'), once(stream, 'close')])
      if (trailers === undefined) throw new Error('closed without an answer')
      return trailers['grpc-status'] === '0' ? 200 : 500
    },
  }
}

/** One request over a connection of its own. */
async function askOnce(name: Listener, port: number, tls = trust): Promise<number> {
  if (name !== 'grpc') return await ask(name, port, false, tls)
  const grpc = openGrpc(port, tls)
  return await grpc.ask().finally(() => grpc.session.destroy())
}

/** The serial number of the certificate that a new connection gets. */
async function servedBy(name: Listener, port: number): Promise<string> {
  const socket = connectTls({ port, ...trust, ALPNProtocols: [name === 'grpc' ? 'h2' : 'http/1.1'] })
  await once(socket, 'secureConnect')
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

class CountingAgent extends Agent {
  made = 0
  override createConnection(...of: Parameters<Agent['createConnection']>) {
    this.made += 1
    return super.createConnection(...of)
  }
}

/**
 * Requests one after the other until `stop`: of `kept` connections each, and of one that opens its own for each
 * request.
 */
function load(name: Listener, port: number, kept: number) {
  const statuses: Record<string, number> = {}
  const agent = new CountingAgent({ keepAlive: true, maxSockets: kept })
  const grpc = name === 'grpc' ? Array.from({ length: kept }, () => openGrpc(port)) : []
  let isStopping = false
  onTestFinished(() => {
    isStopping = true
  })
  const loop = async (one: () => Promise<number>) => {
    while (!isStopping) {
      const status = await one().catch(String)
      statuses[status] = (statuses[status] ?? 0) + 1
    }
  }
  const over = (at: number) => () => grpc[at]?.ask() ?? ask(name, port, agent)
  const loops = Array.from({ length: kept }, (_, at) => loop(over(at)))
  loops.push(loop(() => askOnce(name, port)))
  return {
    async stop() {
      isStopping = true
      await Promise.all(loops)
      const closed = grpc.filter((one) => one.isClosed()).length
      for (const { session } of grpc) session.destroy()
      agent.destroy()
      return { statuses, connectionsLost: grpc.length > 0 ? closed : agent.made - kept }
    },
  }
}

describe('a certificate', () => {
  test('that is replaced under load is served within a second at every listener; no request fails and no connection ends', async () => {
    const { ports, opsOf } = await open()
    const loads = listeners.map((name) => load(name, ports[name], 4))
    const tookMs: number[] = []
    const ends = await readMetric(opsOf('proxy'), 'weir_tls_certificate_expiry_timestamp_seconds{listener="proxy"}')
    expect(Math.abs(ends * 1_000 - Date.now() - 2 * 86_400_000)).toBeLessThan(600_000)
    for (const _ of [1, 2, 3]) {
      const before = await servedBy('proxy', ports.proxy)
      await servers.issue('server')
      const replacedMs = performance.now()
      const isServed = async (name: Listener) => {
        const isNew = async () => (await servedBy(name, ports[name])) !== before
        await until(isNew, 10_000)
        tookMs.push(Math.round(performance.now() - replacedMs))
      }
      await Promise.all(listeners.map(isServed))
    }
    const ended = await Promise.all(loads.map((one) => one.stop()))
    for (const { statuses, connectionsLost } of ended) {
      expect([Object.keys(statuses), connectionsLost]).toEqual([['200'], 0])
    }
    // Looks are 0.4 s apart; a machine that is busy with other tests may take longer now and then.
    expect(tookMs.toSorted((a, b) => a - b)[5]).toBeLessThan(1_000)
    const requests = ended.map(({ statuses }) => statuses['200'])
    process.stdout.write(`new certificate after ${tookMs.join(', ')} ms; requests ${requests.join(', ')}, failed 0\n`)
  })

  test('that does not fit its key is not used, and /readyz names the variable until they fit; it warns of one that has ended', async () => {
    const { ports, opsOf } = await open()
    const before = await servedBy('proxy', ports.proxy)
    const key = `${dir}/server.key`
    await copyFile(key, `${key}.kept`)
    await copyFile(`${dir}/client.key`, key)
    onTestFinished(() => copyFile(`${key}.kept`, key))
    const ready = async (ops: string) => await (await fetch(`${ops}/readyz`)).text()
    const warnings = (wanted: RegExp, count: number) => async () => {
      const said = `${await ready(opsOf('api'))}${await ready(opsOf('console'))}`
      return (said.match(/certificate: warning: WEIR_TLS.*/g) ?? []).filter((one) => wanted.test(one)).length === count
    }
    const misfit = warnings(/WEIR_TLS_KEY names no key that matches WEIR_TLS_CERT /, listeners.length)
    await until(misfit, 20_000)
    for (const name of listeners) expect(await servedBy(name, ports[name])).toBe(before)
    await writeFile(key, '')
    await until(warnings(/WEIR_TLS_KEY names an empty file/, listeners.length), 20_000)
    for (const name of listeners) expect(await servedBy(name, ports[name])).toBe(before)
    await copyFile(`${key}.kept`, key)
    await until(warnings(/./, 0), 20_000)
    const [cert, ended] = [`${dir}/server.crt`, `${dir}/ended.crt`]
    await copyFile(cert, `${cert}.kept`)
    onTestFinished(() => copyFile(`${cert}.kept`, cert))
    await promisify(execFile)('openssl', ['x509', '-in', cert, '-signkey', key, '-days', '-1', '-out', ended])
    await copyFile(ended, cert)
    const hasEnded = warnings(/WEIR_TLS_CERT names a certificate that has expired/, listeners.length)
    await until(hasEnded, 20_000)
  })

  test('of a client is asked for where its authority is named: without one, or by another authority, nothing is served', async () => {
    const { ports } = await open()
    const other = await servers.issue('other')
    const cert = await readFile(other.certFile)
    const wrong = { ca: trust.ca ?? '', cert, key: await readFile(other.keyFile) }
    for (const name of listeners) {
      await expect(askOnce(name, ports[name], { ca: trust.ca ?? '' })).rejects.toThrow()
      await expect(askOnce(name, ports[name], wrong)).rejects.toThrow()
      expect([name, await askOnce(name, ports[name])]).toEqual([name, 200])
    }
    const [ca, ours, key] = [trust.ca, trust.cert, trust.key].map((pem) => Buffer.from(`${pem}`))
    const client = new Client(`127.0.0.1:${ports.grpc}`, credentials.createSsl(ca, key, ours))
    await promisify(client.waitForReady.bind(client))(Date.now() + 10_000)
    client.close()
  })

  test('of a client whose authority was taken away is refused, also in a session that began before', async () => {
    const own = `${dir}/taken-away.crt`
    await copyFile(clients.caFile, own)
    const { ports } = await open({ WEIR_TLS_CLIENT_CA: own })
    const resumed = async (session?: Buffer) => {
      const socket = connectTls({ port: ports.proxy, ...trust, session })
      const sessions: Buffer[] = []
      let isReused = false
      socket.on('session', (one) => sessions.push(one)).on('error', () => undefined)
      socket.once('secureConnect', () => {
        isReused = socket.isSessionReused()
      })
      socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
      const said = await text(socket).catch(() => '')
      return { session: sessions.at(-1), isReused, isServed: said.includes(' 200 ') }
    }
    const { session, ...first } = await resumed()
    expect([first, (await resumed(session)).isReused]).toEqual([{ isReused: false, isServed: true }, true])
    const before = await resumed()
    await copyFile(servers.caFile, own)
    await until(async () => !(await resumed()).isServed, 10_000)
    expect(await resumed(before.session)).toMatchObject({ isReused: false, isServed: false })
  })
})

test('What is no handshake ends within seconds, and others are served meanwhile', async () => {
  const { ports } = await open()
  const hello = Buffer.from('160301020001000', 'hex')
  const ended: Promise<unknown>[] = []
  for (const name of listeners) {
    for (const bytes of ['GET / HTTP/1.1\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', hello, '']) {
      const socket = connect(ports[name], '127.0.0.1').on('error', () => undefined)
      socket.resume().write(bytes)
      const drip = setInterval(() => bytes === hello && socket.writable && socket.write('\0'), 200)
      // A reset is an end like any other: `once` of node:events would reject for it.
      ended.push(new Promise((end) => socket.once('close', end)).finally(() => clearInterval(drip)))
    }
    // Without a protocol by name, and reset.
    for (const ALPNProtocols of [undefined, ['h2', 'http/1.1']]) {
      const below = connect(ports[name], '127.0.0.1')
      const socket = connectTls({ socket: below, ...trust, ALPNProtocols }).on('error', () => undefined)
      await once(socket, 'secureConnect')
      socket.write('x'.repeat(100), () => below.resetAndDestroy())
    }
    expect(await askOnce(name, ports[name])).toBe(200)
  }
  const startedMs = performance.now()
  await Promise.all(ended)
  expect(performance.now() - startedMs).toBeLessThan(10_000)
  for (const name of listeners) expect(await askOnce(name, ports[name])).toBe(200)
})

test('A stop lets the requests under way end over TLS, and waits neither for idle connections nor for handshakes', async () => {
  const { ports, ingress } = await open()
  const agent = new Agent({ keepAlive: true })
  const grpc = openGrpc(ports.grpc)
  expect([await ask('proxy', ports.proxy, agent), await grpc.ask()]).toEqual([200, 200])
  const idle = listeners.map((name) => connect(ports[name], '127.0.0.1').on('error', () => undefined))
  await Promise.all(idle.map((socket) => once(socket, 'connect')))
  const sent = request({ port: ports.proxy, path: '/slow', ...trust }).end()
  await until(() => slow.length === 1, 10_000)
  const startedMs = performance.now()
  const closed = ingress.close()
  await once(grpc.session, 'close')
  slow[0]?.end('late')
  const [answer] = await once(sent, 'response')
  expect([answer.statusCode, await text(answer)]).toEqual([200, 'late'])
  await closed
  expect(performance.now() - startedMs).toBeLessThan(18_000)
})

test('Idle connections are kept for as long as is configured', async () => {
  const plain = { WEIR_TLS_CERT: '', WEIR_TLS_KEY: '', WEIR_TLS_CLIENT_CA: '' }
  const { ports } = await open({ ...plain, WEIR_IDLE_TIMEOUT_MS: '7000' })
  const told = async (port: number) => (await fetch(`http://127.0.0.1:${port}/`)).headers.get('keep-alive')
  for (const name of ['proxy', 'api', 'console'] as const) expect(await told(ports[name])).toBe('timeout=7')
})

test('The commands reach a console with TLS whose authority NODE_EXTRA_CA_CERTS names', async () => {
  const admin = await forTest(startConsole({ ...environment, WEIR_TLS_CLIENT_CA: '' }))
  const url = admin.environment.WEIR_CONSOLE_URL.replace('http:', 'https:')
  const exported = (more: NodeJS.ProcessEnv) =>
    runWeir(['export'], { ...admin.environment, WEIR_CONSOLE_URL: url, ...more })
  expect(await exported({ NODE_EXTRA_CA_CERTS: servers.caFile })).toMatchObject({ code: 0 })
  expect((await exported({})).stderr).toMatch(/UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN/)
})

describe('variables', () => {
  const none = 'TLS_CERT= TLS_KEY= TLS_CLIENT_CA='
  const own = 'API_TLS_CERT=client.crt'
  test.each([
    ['', ''],
    ['TLS_KEY=client.key', 'WEIR_TLS_KEY names no key that matches WEIR_TLS_CERT'],
    ['TLS_KEY=', 'WEIR_TLS_CERT is set without WEIR_TLS_KEY'],
    ['TLS_CERT=', 'WEIR_TLS_KEY is set without WEIR_TLS_CERT'],
    ['TLS_CERT= TLS_KEY=', 'WEIR_TLS_CLIENT_CA is set without WEIR_TLS_CERT'],
    ['TLS_CERT=nowhere.crt', 'WEIR_TLS_CERT names a file that cannot be read'],
    ['TLS_CLIENT_CA=weir.yaml', 'WEIR_TLS_CLIENT_CA names a file without complete certificates'],
    ['TLS_CLIENT_CA=half.crt', 'WEIR_TLS_CLIENT_CA names a file without complete certificates'],
    ['TLS_KEY=empty.key', 'WEIR_TLS_KEY names an empty file'],
    ['TLS_KEY=secret.key', 'WEIR_TLS_KEY names a key with a passphrase'],
    [`${none} GRPC_TLS_CERT=client.crt GRPC_TLS_KEY=client.key`, ''],
    ['API_TLS_CERT=none', ''],
    ['API_TLS_CERT=none API_TLS_CLIENT_CA=clients.crt', 'WEIR_API_TLS_CLIENT_CA is set without WEIR_API_TLS_CERT'],
    [own, 'WEIR_TLS_KEY names no key that matches WEIR_API_TLS_CERT'],
    [`${own} API_TLS_KEY=client.key API_TLS_CLIENT_CA=none`, ''],
  ])('with %j: %j', async (more, wanted) => {
    const pem = await readFile(clients.caFile, 'utf8')
    await writeFile(`${dir}/half.crt`, `${pem}${pem.slice(0, 300)}`)
    await writeFile(`${dir}/empty.key`, '')
    await writeFile(`${dir}/secret.key`, '-----BEGIN ENCRYPTED PRIVATE KEY-----\n')
    const pairs = more
      .split(' ')
      .filter(Boolean)
      .map((one) => one.split('='))
    const path = (file = '') => (file === '' || file === 'none' ? file : `${dir}/${file}`)
    const changed = Object.fromEntries(pairs.map(([name, file]) => [`WEIR_${name}`, path(file)]))
    const result = checkConfig(ingressVariables, { WEIR_JOURNAL_DIR: dir, ...environment, ...changed })
    const [problem = ''] = result.kind === 'config' ? [] : result.problems
    expect([problem.startsWith(wanted), problem === '']).toEqual([true, wanted === ''])
  })

  test('of one listener override those of all: the API is plain or asks for no client certificate, and the rest do', async () => {
    const { ports } = await open({ WEIR_API_TLS_CLIENT_CA: 'none', WEIR_GRPC_TLS_CERT: 'none' })
    expect(await askOnce('api', ports.api, { ca: trust.ca ?? '' })).toBe(200)
    const session = connectHttp2(`http://127.0.0.1:${ports.grpc}`)
    await once(session, 'connect')
    session.destroy()
    await expect(askOnce('proxy', ports.proxy, { ca: trust.ca ?? '' })).rejects.toThrow()
  })

  test('that cannot be right end the start with 2, and weir up does not take them', async () => {
    const wrong = { ...environment, WEIR_TLS_KEY: `${dir}/client.key` }
    await expect(startIngress(wrong)).rejects.toThrow('The environment is invalid:\n  WEIR_TLS_KEY names no key')
    const checked = await runWeir(['check'], { ...wrong, WEIR_JOURNAL_DIR: dir })
    expect([checked.code, checked.stderr]).toEqual([2, expect.stringContaining('WEIR_TLS_KEY names no key that')])
    const up = await runWeir(['up'], { WEIR_API_TLS_CERT: `${dir}/server.crt` })
    expect([up.code, up.stderr]).toEqual([
      2,
      expect.stringContaining('WEIR_API_TLS_CERT is set, and weir up serves without'),
    ])
  })
})
