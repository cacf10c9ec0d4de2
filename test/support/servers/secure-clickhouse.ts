import { readFileSync } from 'node:fs'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import type { Authority } from './certificates.ts'
import { type RunningServer, startServer } from './start-server.ts'

export interface SecureClickhouse extends Pick<RunningServer, 'kill' | 'restart'> {
  /** With TLS, for users with a password. */
  readonly url: string
  /** The engine itself: plain text, its own user. */
  readonly engineUrl: string
  /** The user need not be known before. The next request counts. */
  setPassword(user: string, password: string): void
  /** Ends connections, as a load balancer that is restarted does. */
  closeConnections(): void
  close(): Promise<void>
}

const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/**
 * A ClickHouse that speaks https and knows users: the local one does neither, so that a server before it does. All
 * users may do all.
 */
export async function startSecureClickhouse(authority: Authority): Promise<SecureClickhouse> {
  const engine = await startServer(clickhouseServer)
  const { hostname, port, username, password } = new URL(engine.address)
  const known = new Map<string, string>()
  const passOn = (incoming: IncomingMessage, answer: ServerResponse) => {
    const { method = '', url = '', headers } = incoming
    const isKnown = [...known.values()].includes(headers.authorization ?? '')
    // The engine itself refuses what is not known, and names the user.
    const authorization = isKnown ? { authorization: basic(username, password) } : {}
    const outgoing = request({ host: hostname, port, method, path: url, headers: { ...headers, ...authorization } })
    outgoing.once('response', (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers)
      response.once('error', () => answer.destroy())
      response.pipe(answer)
    })
    outgoing.once('error', () => answer.destroy())
    answer.once('close', () => outgoing.destroy())
    incoming.pipe(outgoing)
  }
  const { certFile, keyFile } = await authority.issue('clickhouse')
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, passOn)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    engineUrl: engine.address,
    kill: engine.kill,
    restart: engine.restart,
    setPassword: (user, secret) => void known.set(user, basic(user, secret)),
    closeConnections: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections()
      server.close()
      await engine.close()
    },
  }
}
