import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { RedisTlsFiles } from '@weir/redis/redis-variables.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { startFamily } from './redis-process.ts'

export interface TlsServer {
  readonly port: number
  /** The certificate that signed the server's. */
  readonly caFile: string
  /** That, and a client's certificate of the same authority with its key. */
  readonly files: RedisTlsFiles
  close(): Promise<void>
}

const openssl = (...args: string[]) => promisify(execFile)('openssl', args)
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'] as const

/** An authority in a folder, and what it signs there: `name.crt` with `name.key`. */
async function createAuthority(dir: string) {
  const file = (name: string) => join(dir, name)
  const ca = ['-keyout', file('ca.key'), '-out', file('ca.crt')]
  await openssl('req', '-x509', ...newKey, ...ca, '-days', '2', '-subj', '/CN=weir test authority')
  return async (name: string, altName: string) => {
    await openssl('req', ...newKey, '-keyout', file(`${name}.key`), '-out', file(`${name}.csr`), '-subj', `/CN=${name}`)
    await writeFile(file(`${name}.ext`), `subjectAltName=${altName}\n`)
    const signer = ['-CA', file('ca.crt'), '-CAkey', file('ca.key'), '-CAcreateserial']
    const signed = ['-in', file(`${name}.csr`), '-out', file(`${name}.crt`), '-extfile', file(`${name}.ext`)]
    await openssl('x509', '-req', ...signed, ...signer, '-days', '2')
  }
}

/** A Redis that speaks TLS alone, with a certificate for 127.0.0.1 of an authority made for it. */
export async function startTlsRedis(settings: readonly string[] = [], clients = 'no'): Promise<TlsServer> {
  const [port = 0] = await freePorts(1)
  const family = await startFamily('tls')
  const file = (name: string) => join(family.dir, name)
  const sign = await createAuthority(family.dir)
  await sign('redis', 'IP:127.0.0.1')
  await sign('client', 'DNS:weir')
  await family.start(port, [
    'port 0',
    `tls-port ${port}`,
    'bind 127.0.0.1',
    `tls-cert-file ${file('redis.crt')}`,
    `tls-key-file ${file('redis.key')}`,
    `tls-ca-cert-file ${file('ca.crt')}`,
    `tls-auth-clients ${clients}`,
    ...settings,
  ])
  const files = { redisTlsCa: file('ca.crt'), redisTlsCert: file('client.crt'), redisTlsKey: file('client.key') }
  return { port, caFile: file('ca.crt'), files, close: family.close }
}
