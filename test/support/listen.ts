import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { onTestFinished } from 'vitest'

/** Has a server listen on a free port of this machine, and resolves to the port. */
export async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

/** As `listen`; the server and what is connected to it are closed when the test is finished. */
export function listenForTest(server: Server & { closeAllConnections?(): void }): Promise<number> {
  onTestFinished(() => {
    server.closeAllConnections?.()
    server.close()
  })
  return listen(server)
}
