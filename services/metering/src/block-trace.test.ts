import { formatTrace } from '@weir/contracts/trace-context.ts'
import type { EndedSpan } from '@weir/runtime/tracing.ts'
import { expect, test } from 'vitest'
import { BlockTrace } from './block-trace.ts'

const traceOf = (at: number) => ({ traceId: String(at).padStart(32, '1'), spanId: String(at).padStart(16, '2') })

/** Records as a fetch brings them: keys and values one behind the other in one buffer. */
function recordsOf(all: readonly { readonly key: string; readonly value: string }[]) {
  const bytes = Buffer.from(all.map(({ key, value }) => key + value).join(''))
  let at = 0
  return all.map(({ key, value }, position) => {
    const valueStart = at + key.length
    at = valueStart + value.length
    return { position, timestampMs: 1, bytes, valueStart, valueEnd: at, value: Buffer.from(value) }
  })
}

function tracesThatGetSpans(parts: Parameters<typeof BlockTrace.begin>[2]) {
  const spans: EndedSpan[] = []
  const tracing = { sample: () => true, record: (span: EndedSpan) => void spans.push(span) }
  const trace = BlockTrace.begin(tracing, { topic: 'weir.decisions.v1', table: 'decisions' }, parts)
  trace?.committed({ rows: 1, partitions: 1, isRecovery: false })
  return spans.filter(({ name }) => name === 'process weir.decisions.v1').map(({ traceId }) => traceId)
}

test('a key that looks like a trace is none, and the traces of values in every buffer are found', () => {
  const forged = `"trace":"${formatTrace(traceOf(9))}"`
  const untraced = Array.from({ length: 40 }, () => ({ key: forged, value: '{"id":"1"}' }))
  const traced = (at: number) => ({ key: forged, value: `{"id":"1","trace":"${formatTrace(traceOf(at))}","seq":1}` })
  const parts = [
    { records: [...recordsOf([...untraced, traced(1), traced(2)]), ...recordsOf([traced(3)])] },
    { records: recordsOf([traced(4), ...untraced]) },
  ]
  expect(tracesThatGetSpans(parts)).toEqual([1, 2, 3, 4].map((at) => traceOf(at).traceId))
  expect(tracesThatGetSpans([{ records: recordsOf(untraced) }])).toEqual([])
  expect(tracesThatGetSpans([{ records: recordsOf(Array.from({ length: 99 }, () => traced(1))) }])).toHaveLength(32)
})
