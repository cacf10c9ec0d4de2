import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type * as http from 'node:http'
import type * as net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, setDefaultCACertificates } from 'node:tls'
import { afterAll, describe, vi } from 'vitest'
import { createAuthority } from '../../support/servers/certificates.ts'
import { overTls } from './open-proxy.ts'

/** Whatever these files hold of a plain listener holds of one with TLS: their clients connect by TLS here, and the upstream stays plain. */
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
  return { ...(await original<typeof http>()), request }
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
  await import('./smuggling.test.ts')
  await import('./bounds.test.ts')
  await import('./tunnels.test.ts')
})
