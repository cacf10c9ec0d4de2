import { expect, test } from 'vitest'
import { askingForUsage, UsageEventFilter } from './usage-event.ts'

const words = [
  'data: {"choices":[{"delta":{"content":"\\n\\n"}}]}\n\n',
  ': ping\r\n\r\n',
  'data: {"choices":[],"x":1}\n\n',
]
const usage = 'data: {"choices": [],"usage":{"prompt_tokens":1}}\n\n'
const rest = ['data: [DONE]\n\n', 'data: {"usage":{},"choices":[{"delta":{}}]}\n\n', 'data: never ended']

test('Only the event with the usage is kept back, in whatever pieces a stream comes', () => {
  const stream = Buffer.from([...words, usage, ...rest].join(''))
  for (let first = 0; first <= stream.length; first += 1) {
    for (const second of [first, Math.min(first + 1, stream.length), Math.max(first, stream.length - 1)]) {
      const filter = new UsageEventFilter()
      const ends = [first, second, stream.length]
      const shown = ends.map((end, at) => filter.pass(stream.subarray(ends[at - 1] ?? 0, end)))
      expect(Buffer.concat([...shown, filter.rest()]).toString()).toBe([...words, ...rest].join(''))
    }
  }
})

test('An event beyond 64 kB is not kept back', () => {
  const filter = new UsageEventFilter()
  const long = Buffer.from(`data: ${'x'.repeat(70_000)}`)
  expect(filter.pass(long).length).toBe(long.length)
})

test('A body asks for its usage before its last brace', () => {
  const asked = askingForUsage(Buffer.from('{"stream":true,"a":{"b":1}} \n')).toString()
  expect(asked).toBe('{"stream":true,"a":{"b":1},"stream_options":{"include_usage":true}} \n')
})
