import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePorts } from '@weir/runtime/ports.ts'
import { startFamily } from './redis-process.ts'

export interface TlsServer {
  readonly port: number
  /** The certificate that signed the server's. */
  readonly caFile: string
  close(): Promise<void>
}

const openssl = (...args: string[]) => promisify(execFile)('openssl', args)
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'] as const

/** A Redis that speaks TLS alone, with a certificate for 127.0.0.1 of an authority made for it. */
export async function startTlsRedis(settings: readonly string[] = []): Promise<TlsServer> {
  const [port = 0] = await freePorts(1)
  const family = await startFamily('tls')
  const file = (name: string) => join(family.dir, name)
  const ca = ['-keyout', file('ca.key'), '-out', file('ca.crt')]
  await openssl('req', '-x509', ...newKey, ...ca, '-days', '2', '-subj', '/CN=weir test authority')
  await openssl('req', ...newKey, '-keyout', file('redis.key'), '-out', file('redis.csr'), '-subj', '/CN=redis')
  await writeFile(file('redis.ext'), 'subjectAltName=IP:127.0.0.1\n')
  const signer = ['-CA', file('ca.crt'), '-CAkey', file('ca.key'), '-CAcreateserial']
  const signed = ['-in', file('redis.csr'), '-out', file('redis.crt'), '-extfile', file('redis.ext')]
  await openssl('x509', '-req', ...signed, ...signer, '-days', '2')
  await family.start(port, [
    'port 0',
    `tls-port ${port}`,
    'bind 127.0.0.1',
    `tls-cert-file ${file('redis.crt')}`,
    `tls-key-file ${file('redis.key')}`,
    `tls-ca-cert-file ${file('ca.crt')}`,
    'tls-auth-clients no',
    ...settings,
  ])
  return { port, caFile: file('ca.crt'), close: family.close }
}
