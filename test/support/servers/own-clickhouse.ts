import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { createClient } from '@clickhouse/client'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import { type RunningServer, startServer } from './start-server.ts'

/** A database beside `weir` that says whose that is: without it, it is not the tests' to drop. */
const mark = 'weir_of_tests'

/** Connections to a server that can be cut, which is how a server looks that dies and comes back. */
async function openRelay({ hostname, port }: URL) {
  const sockets = new Set<Socket>()
  const forward = (near: Socket) => {
    const far = connect(Number(port || 80), hostname)
    for (const [one, other] of [[near, far] as const, [far, near] as const]) {
      sockets.add(one)
      one.pipe(other)
      one.on('error', () => {}).on('close', () => other.destroy(void sockets.delete(one)))
    }
  }
  let server: Server
  const listen = async (at: number) => {
    server = createServer(forward).listen(at, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }
  const nearPort = await listen(0)
  return {
    port: nearPort,
    async cut() {
      const closed = server.listening ? once(server.close(), 'close') : undefined
      for (const socket of sockets) socket.destroy()
      await closed
    },
    async join() {
      await listen(nearPort)
    },
  }
}

/** Takes a server of the environment for the tests. Resolves to what leaves it as it was. */
export async function claimGiven(url: string): Promise<() => Promise<void>> {
  const client = createClient({ url })
  const found = await client.query({ query: 'SHOW DATABASES', format: 'JSONEachRow' })
  const names = (await found.json<{ name: string }>()).map(({ name }) => name)
  if (names.includes('weir') && !names.includes(mark)) {
    throw new Error('the server of WEIR_CLICKHOUSE_URL has a database weir, which tests would drop: name another')
  }
  await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${mark}` })
  return async () => {
    for (const name of ['weir', mark]) await client.command({ query: `DROP DATABASE IF EXISTS ${name} SYNC` })
    await client.close()
  }
}

/** A server of the environment as one of the test's own: its database `weir` is dropped before and after. */
async function takeGiven(url: string): Promise<RunningServer> {
  const client = createClient({ url })
  const dropTables = async () => void (await client.command({ query: 'DROP DATABASE IF EXISTS weir SYNC' }))
  await dropTables()
  const address = new URL(url)
  const relay = await openRelay(address)
  address.host = `127.0.0.1:${relay.port}`
  const isLocal = (what: string) =>
    new Error(`${what}: only the local ClickHouse has that, without WEIR_CLICKHOUSE_URL`)
  return {
    address: address.href.replace(/\/$/, ''),
    get dir(): string {
      throw isLocal('the folder of the data')
    },
    logFile: '',
    pid: () => {
      throw isLocal('the process')
    },
    kill: () => relay.cut(),
    restart: () => relay.join(),
    async close() {
      await relay.cut()
      await dropTables()
      await client.close()
    },
  }
}

/**
 * A ClickHouse whose database `weir` is the test's own, since its name is fixed: the local one, or that of
 * WEIR_CLICKHOUSE_URL, on which the files of a tier take turns, and where `kill` cuts all connections.
 */
export const startOwnClickhouse = (): Promise<RunningServer> => {
  const given = process.env.WEIR_TEST_CLICKHOUSE
  return given ? takeGiven(given) : startServer(clickhouseServer)
}
