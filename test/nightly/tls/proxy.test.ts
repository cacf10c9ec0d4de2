import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type * as http from 'node:http'
import type * as net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, setDefaultCACertificates } from 'node:tls'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { openProxy, overTls } from '../../servers/proxy/open-proxy.ts'
import { createAuthority } from '../../support/servers/certificates.ts'

/** Runs tests of the plain listener on one with TLS: their clients connect by TLS, and the upstream stays plain. */
vi.mock('node:net', async (original) => {
  const real = await original<typeof net>()
  const connect = (port: number) => {
    const below = real.connect(port, '127.0.0.1')
    const socket = connectTls({ socket: below })
    return Object.assign(socket, { resetAndDestroy: () => below.resetAndDestroy() })
  }
  return { ...real, connect }
})
vi.mock('node:http', async (original) => {
  const { request } = await import('node:https')
  return { ...(await original<typeof http>()), request: (of: object) => request({ ...of, servername: 'localhost' }) }
})
class SecureWebSocket extends WebSocket {
  constructor(url: string) {
    super(url.replace(/^ws:/, 'wss:'))
  }
}
vi.stubGlobal('WebSocket', SecureWebSocket)
vi.mock('../../support/count-attempts.ts', () => ({ countAttempts: () => undefined }))

const dir = await mkdtemp(join(tmpdir(), 'weir-over-tls-'))
const authority = await createAuthority(dir)
setDefaultCACertificates([await readFile(authority.caFile, 'utf8')])
const { certFile: tlsCert, keyFile: tlsKey } = await authority.issue('proxy')
overTls.files = { tlsCert, tlsKey }
afterAll(() => rm(dir, { recursive: true }))

describe('over TLS', async () => {
  it('an upstream learns that the client came by https', async () => {
    const { ask, seen } = await openProxy()
    await ask()
    const forwarded = 'for=127.0.0.1;host="api.test";proto=https'
    expect(seen[0]?.headers).toMatchObject({ 'x-forwarded-proto': 'https', forwarded })
  })
  await import('../../servers/proxy/smuggling.test.ts')
  await import('../../servers/proxy/bounds.test.ts')
  await import('../../servers/proxy/tunnels.test.ts')
})
