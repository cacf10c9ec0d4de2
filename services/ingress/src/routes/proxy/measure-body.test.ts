import type { IncomingMessage } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Readable } from 'node:stream'
import { RequestMeter } from '@weir/meters/measure-request.ts'
import { meterDefaults } from '@weir/meters/meter.ts'
import { meterReaderOf } from '@weir/meters/meter-reader.ts'
import { expect, test } from 'vitest'
import { readWhole } from './client-body.ts'
import { scanInto } from './measure-body.ts'

const bytesMax = 10 * 1_048_576
const reader = meterReaderOf({ ...meterDefaults, name: 'openai', preset: 'openai' })
const bodyOf = (messages: string) => Buffer.from(`{"max_tokens":9,"messages":[${messages}]}`)
const nextTurn = () => new Promise((done) => setImmediate(done))
const message = '{"role":"user","content":"hello"}'

/** The longest pause of the event loop while a body is measured that comes in pieces of this size, in ms. */
async function longestPause(body: Buffer, size: number): Promise<number> {
  const pieces = Array.from({ length: Math.ceil(body.length / size) }, (_, n) =>
    body.subarray(n * size, (n + 1) * size),
  )
  const request = Object.assign(Readable.from(pieces, { highWaterMark: 1 }), { headers: {} })
  const measuring = new RequestMeter(reader, { values: () => [] })
  const pauses = monitorEventLoopDelay({ resolution: 1 })
  pauses.enable()
  while (pauses.count === 0) await nextTurn()
  const { scan } = scanInto(measuring, () => true)
  const whole = await readWhole(request as unknown as IncomingMessage, bytesMax, scan)
  const seen = pauses.count
  while (pauses.count === seen) await nextTurn()
  pauses.disable()
  expect([whole?.length, 'most' in measuring.end()]).toEqual([body.length, true])
  return pauses.max / 1e6
}

test.each([
  ['many small messages', bodyOf(Array.from({ length: 300_000 }, () => message).join())],
  ['a prompt of escapes', bodyOf(`{"content":"${'\\"'.repeat(5_000_000)}"}`)],
])(
  'Others have their turn while a body of 10 MB is measured: %s',
  async (_, body) => {
    // A bar in milliseconds would be another one on each machine.
    const inOnePiece = await longestPause(body, body.length)
    const inPieces: number[] = []
    // On a busy machine any of them may have waited for a core.
    for (let n = 0; n < 4; n += 1) inPieces.push(await longestPause(body, 65_536))
    // A tenth, mostly.
    expect(Math.min(...inPieces)).toBeLessThan(inOnePiece / 3)
  },
  60_000,
)
