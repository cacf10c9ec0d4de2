import { expect, test } from 'vitest'
import { findTraces, formatTrace, formatTraceparent, parseTrace, parseTraceparent } from './trace-context.ts'

const [traceId, spanId] = ['0198f3a1b2c37d4e8f90a1b2c3d4e5f6', '00f067aa0ba902b7']

test('a traceparent is read as W3C Trace Context says', () => {
  expect(parseTraceparent(formatTraceparent({ traceId, spanId }))).toEqual({ traceId, spanId, isSampled: true })
  expect(parseTraceparent(`00-${traceId}-${spanId}-02`)).toEqual({ traceId, spanId, isSampled: false })
  // A later version may have more behind it.
  expect(parseTraceparent(`01-${traceId}-${spanId}-03-more`)).toEqual({ traceId, spanId, isSampled: true })
  for (const wrong of [
    '',
    `00-${traceId}-${spanId}-01-more`,
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`,
  ]) {
    expect([wrong, parseTraceparent(wrong)]).toEqual([wrong, undefined])
  }
})

test('the traces of records are found in their bytes, and nothing that a caller wrote is one', () => {
  const trace = formatTrace({ traceId, spanId })
  const forged = { subject: `","trace":"${trace}"`, by: { ip: `\\"trace":"${trace}` } }
  const lines = [{ id: 1, trace }, forged, { id: 2, trace, journal: 'j' }, { trace: 'none' }, { trace: '' }]
  const bytes = Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'))
  const found = [...findTraces(bytes, 0, bytes.length)]
  expect(found.map((one) => one.trace)).toEqual(Array(2).fill({ traceId, spanId }))
  expect(found.map(({ at }) => bytes.toString('latin1', at, at + 9))).toEqual(Array(2).fill('"trace":"'))
  expect([...findTraces(bytes, 10, bytes.length)]).toHaveLength(1)
  expect([...findTraces(bytes, 0, trace.length)]).toEqual([])
  expect(parseTrace(undefined)).toBeUndefined()
})
