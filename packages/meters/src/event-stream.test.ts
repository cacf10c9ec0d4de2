import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventStream } from './event-stream.ts'

function eventsOf(pieces: readonly Buffer[]) {
  const events: [string, string][] = []
  let data = ''
  const stream = new EventStream({
    data: (piece) => {
      data += piece.toString('latin1')
    },
    ended: (name) => {
      events.push([name, Buffer.from(data, 'latin1').toString().trim()])
      data = ''
    },
  })
  for (const piece of pieces) stream.write(piece)
  return events
}

const stream = [
  ': ping',
  '',
  'event: message_start',
  'data: {"a":1}',
  '',
  'data:{"b":',
  'data: 2}',
  'id: 7',
  '',
  `x${'y'.repeat(5_000)}: 1`,
  'event: not sent',
  '',
  'dat',
  'data',
  'data: [DONE] ü',
  '',
  'data: never ended',
].join('\n')

const events = [
  ['message_start', '{"a":1}'],
  ['message', '{"b":\n 2}'],
  ['message', '[DONE] ü'],
]

test('takes a stream apart, whatever ends its lines', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    expect(eventsOf([Buffer.from(stream.replaceAll('\n', end))]), JSON.stringify(end)).toEqual(events)
  }
})

test('the pieces in which it comes change nothing', () => {
  const bytes = fc.constantFrom('\n', '\r\n', '\r').map((end) => Buffer.from(stream.replaceAll('\n', end)))
  fc.assert(
    fc.property(bytes, fc.array(fc.nat(6_000), { maxLength: 40 }), (whole, cuts) => {
      const ends = [...cuts.map((cut) => cut % whole.length).sort((a, b) => a - b), whole.length]
      expect(eventsOf(ends.map((end, at) => whole.subarray(ends[at - 1] ?? 0, end)))).toEqual(events)
    }),
  )
})

test('A chunk without a line feed is read once', () => {
  const startedMs = performance.now()
  eventsOf([Buffer.from('\r'.repeat(1_000_000))])
  expect(performance.now() - startedMs).toBeLessThan(5_000)
})
