import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { frameRequest, headBytes } from './frame-request.ts'

const requireCjs = createRequire(import.meta.url)
const original: typeof frameRequest = requireCjs('kafkajs/src/protocol/request')

const text = Buffer.from('the body of a request')
const asked = (clientId: string, freeBefore: number) => {
  const memory = Buffer.alloc(freeBefore + text.length, 0xee)
  text.copy(memory, freeBefore)
  const buffer = memory.subarray(freeBefore)
  const encode = async () => ({ buf: buffer, buffer, freeBefore })
  return { memory, framed: { correlationId: 77, clientId, request: { apiKey: 3, apiVersion: 12, encode } } }
}

test.each([
  ['weir-ingress', headBytes],
  ['weir-ingress', 0],
  ['é'.repeat(headBytes), headBytes],
])(
  'A request of the client %s with %i free bytes before its body is framed as kafkajs frames it',
  async (name, free) => {
    const { framed } = asked(name, free)
    expect((await frameRequest(framed)).buffer).toEqual((await original(framed)).buffer)
  },
)

test('A head that finds space before the body leaves the body where it is', async () => {
  const { memory, framed } = asked('weir-ingress', headBytes)
  const { buffer } = await frameRequest(framed)
  expect(buffer.buffer).toBe(memory.buffer)
  expect(memory.subarray(headBytes)).toEqual(text)
  expect(memory.subarray(0, headBytes - 26)).toEqual(Buffer.alloc(headBytes - 26, 0xee))
})
