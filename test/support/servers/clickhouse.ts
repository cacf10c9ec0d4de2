import { randomUUID } from 'node:crypto'
import { createClient } from '@clickhouse/client'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import { startServer } from './start-server.ts'

/**
 * The local ClickHouse in a process of its own, for tests of that very server: others take `inject('clickhouseUrl')`.
 */
export async function startClickhouse() {
  const server = await startServer(clickhouseServer)
  const { origin: url, username, password } = new URL(server.address)
  /** The header that lets a request in. */
  const credentials = { authorization: `Basic ${btoa(`${username}:${password}`)}` }
  const client = createClient({ url: server.address, keep_alive: { idle_socket_ttl: 2_500 } })
  /**
   * A POST of a statement as any HTTP client sends it: parameters in the URL, the statement or an INSERT's data in the
   * body.
   */
  const post = (
    parameters: Readonly<Record<string, string>>,
    body?: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
  ) =>
    fetch(`${url}/?${new URLSearchParams(parameters)}`, {
      method: 'POST',
      headers: { ...credentials, ...headers },
      ...(body === undefined ? {} : { body }),
    })
  return {
    server,
    url,
    credentials,
    client,
    post,
    /** The text that a statement answers; throws what the server said when it refused. */
    async ask(sql: string, parameters: Readonly<Record<string, string>> = {}) {
      const answer = await post(parameters, sql)
      const text = await answer.text()
      if (!answer.ok) throw new Error(text)
      return text.replace(/\n$/, '')
    },
    async close() {
      await client.close()
      await server.close()
    },
  }
}

/** A table name that no other test uses. */
export const randomTable = (): string => `t_${randomUUID().replaceAll('-', '')}`
