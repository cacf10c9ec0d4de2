import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { clickhouseAt } from '@weir/clickhouse/variables.ts'
import { afterEach, expect, test } from 'vitest'
import { applyMigrations } from './migrate.ts'

let server: Server
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

test('a ClickHouse that answers no request at first is asked again', async () => {
  let pings = 0
  server = createServer((request, response) => {
    if (request.url !== '/ping') return void response.writeHead(500).end('Code: 60. DB::Exception: no tables here.')
    pings += 1
    if (pings <= 2) return void response.destroy()
    response.end('Ok.\n')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const migrated = applyMigrations(clickhouseAt(`http://127.0.0.1:${port}`), () => undefined)
  await expect(migrated).rejects.toThrow('no tables here')
  expect(pings).toBeGreaterThan(2)
})
