import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test } from 'vitest'
import { openConsoleStream } from './console-client.ts'

test('a stream ends with its signal, also once fetch has forgotten the signal', async () => {
  const server = createServer((_, response) => response.write(': following\n\n')).listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const address = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: 'token' }
  const stop = new AbortController()
  const events = openConsoleStream(address, { path: '/' }, { lastId: undefined, signal: stop.signal })
  expect((await events.next()).value?.data).toBe('following')
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  stop.abort()
  expect(await events.next()).toEqual({ done: true, value: undefined })
})
