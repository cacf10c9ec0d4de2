import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import { expect, onTestFinished, test } from 'vitest'
import { openUsageStream } from './usage-stream.ts'

const frame = (reason: string) => `\r\n__exception__\r\ntag\r\n${reason}\n${reason.length + 1} tag\r\n__exception__\r\n`

/** No real server fails in the middle of an answer whenever a test wants it to. */
async function answersOf(body: string): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    response.write(body, () => response.socket?.end())
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const client = connectClickhouse(`http://127.0.0.1:${port}`, 'test')
  onTestFinished(async () => {
    await client.close()
    server.close()
  })
  const query = { by: [], only: {}, except: {}, step: 'total', timeZone: 'UTC', fromMs: 0, toMs: 900_000 } as const
  const source = { table: 'usage_15m', bucketMs: 900_000, sums: { count: 'sum(u.count)' } }
  const form = { format: 'csv', sumsAreText: false, isCsvExact: true } as const
  const question = { source, query: { ...query, subjectPrefix: undefined }, form }
  return text(await openUsageStream(client, Reach.everybody, question, new AbortController().signal))
}

test('an answer that ClickHouse ends in its middle is an error with its reason, and rows are not taken for one', async () => {
  const reason = 'Code: 241. DB::Exception: memory limit exceeded'
  await expect(answersOf(`"1"\r\n${frame(reason)}`)).rejects.toThrow(`in its middle: ${reason}`)
  await expect(answersOf(`"${reason}"\r\n`)).rejects.toThrow('it gave no reason')
})
