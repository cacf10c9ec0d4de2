import type { RedisTlsFiles } from '@weir/redis/redis-url.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { createAuthority } from './certificates.ts'
import { type RedisProcess, startFamily } from './redis-process.ts'

export interface TlsServer {
  readonly port: number
  /** The certificate that signed the server's. */
  readonly caFile: string
  /** That, and a client's certificate of the same authority with its key. */
  readonly files: RedisTlsFiles
  readonly process: RedisProcess
  close(): Promise<void>
}

/** A Redis that speaks TLS alone, with a certificate for 127.0.0.1 of an authority made for it. */
export async function startTlsRedis(settings: readonly string[] = [], clients = 'no'): Promise<TlsServer> {
  const [port = 0] = await freePorts(1)
  const family = await startFamily('tls')
  const { caFile, issue } = await createAuthority(family.dir)
  const own = await issue('redis')
  const client = await issue('client')
  const process = await family.start(port, [
    'port 0',
    `tls-port ${port}`,
    'bind 127.0.0.1',
    `tls-cert-file ${own.certFile}`,
    `tls-key-file ${own.keyFile}`,
    `tls-ca-cert-file ${caFile}`,
    `tls-auth-clients ${clients}`,
    ...settings,
  ])
  const files = { redisTlsCa: caFile, redisTlsCert: client.certFile, redisTlsKey: client.keyFile }
  return { port, caFile, files, process, close: family.close }
}
