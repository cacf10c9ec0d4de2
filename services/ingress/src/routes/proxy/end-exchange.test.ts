import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Usage } from '@weir/decide/correct/usage-settler.ts'
import type { ChargedDecision } from '@weir/decide/types.ts'
import { meterDefaults } from '@weir/meters/meter.ts'
import { meterReaderOf } from '@weir/meters/meter-reader.ts'
import { Histogram } from '@weir/runtime/histogram.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, test } from 'vitest'
import { TokenUsage } from '../../http/token-usage.ts'
import { createEnding } from './end-exchange.ts'
import { MeteredExchange } from './metered-exchange.ts'
import type { ProxiedRequest } from './proxied-request.ts'

const usage = { prompt_tokens: 3, completion_tokens: 4 }
const json = JSON.stringify({ choices: [{ message: { content: randomBytes(2_000_000).toString('hex') } }], usage })
const sent = { atMs: 0, duration: new Histogram([1]) }
const measure = { most: new Map(), isUnbounded: false, isDeferred: false, dimensions: new Map(), bytes: 400 }

/** An exchange that ends behind these bytes. */
function endOf(bytes: Buffer, encoding: string | undefined, isDrained = false) {
  const settled: Usage[] = []
  const ports = {
    outcomes: { append: () => true },
    clock: { nowMs: () => 0 },
    usage: { settle: async (_: ChargedDecision, used: Usage) => void settled.push(used) },
    tokens: new TokenUsage(),
  }
  const ending = createEnding(ports, createLogger('test', 'silent'))
  const reader = meterReaderOf({ ...meterDefaults, name: 'openai', preset: 'openai' })
  const metered = new MeteredExchange(reader, measure, {} as ChargedDecision)
  metered.begins({ 'content-type': 'application/json', 'content-encoding': encoding })
  metered.isDrained = isDrained
  metered.reads(bytes)
  const proxied = { metered, request: { socket: {} }, response: {}, route: {}, path: '/', decisionId: '', startedAt: 0 }
  const of = proxied as unknown as ProxiedRequest
  ending.ended(of, { status: 200, bytesIn: 400, bytesOut: bytes.length, error: '' }, sent)
  return { ...ending, of, settled }
}
const said = [{ basis: 'reported', units: new Map(Object.entries({ input_tokens: 3, output_tokens: 4, tokens: 7 })) }]

test.each([undefined, 'identity', ''])('An answer in plain text (%s) is settled as it ends', (encoding) => {
  expect(endOf(Buffer.from(json), encoding).settled).toMatchObject(said)
})

test('An encoded answer is settled once it is decoded, for which a stop waits', async () => {
  const { settled, settleDrained } = endOf(gzipSync(json), 'GZIP')
  expect(settled).toEqual([])
  await settleDrained()
  expect(settled).toMatchObject(said)
})

test('So does a stop for what is read on after its client has left', async () => {
  const { settled, settleDrained, released, of } = endOf(gzipSync(json), 'gzip', true)
  await settleDrained()
  expect(settled).toMatchObject(said)
  released(of)
  await settleDrained()
  expect(settled).toHaveLength(1)
})
