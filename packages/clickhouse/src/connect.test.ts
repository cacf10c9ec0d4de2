import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { connectClickhouse } from './connect.ts'

test('A client that made its database and was closed leaves no connection open', async () => {
  const server = createServer((_, response) => response.end()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const client = connectClickhouse(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'test')
  await client.createDatabase()
  await client.command({ query: 'SELECT 1' })
  const open = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)))
  expect(await open()).toBeGreaterThan(0)
  await client.close()
  await expect.poll(open, { timeout: 1_000, interval: 10 }).toBe(0)
})
