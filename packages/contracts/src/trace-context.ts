import { randomBytes } from 'node:crypto'

/** A span, as W3C Trace Context names it: 32 and 16 lower-case hex digits, neither all zeros. */
export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
}

const zeros = /^0+$/
const ids = /^([0-9a-f]{32})-([0-9a-f]{16})$/
const header = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

const contextOf = (traceId = '', spanId = ''): TraceContext | undefined =>
  zeros.test(traceId) || zeros.test(spanId) ? undefined : { traceId, spanId }

/** Returns a new id of a span. */
export const newSpanId = (): string => randomBytes(8).toString('hex')

/** Writes the field `trace` of a sampled decision's record. */
export const formatTrace = ({ traceId, spanId }: TraceContext): string => `${traceId}-${spanId}`

/** Reads that field; undefined for anything else, which only foreign programs write. */
export function parseTrace(text: string | undefined): TraceContext | undefined {
  const [, traceId, spanId] = ids.exec(text ?? '') ?? []
  return traceId === undefined ? undefined : contextOf(traceId, spanId)
}

/** Writes the header `traceparent` of a sampled span. */
export const formatTraceparent = ({ traceId, spanId }: TraceContext): string => `00-${traceId}-${spanId}-01`

/** Reads the header `traceparent` of any version, as far as version 00 goes; undefined for one that is not valid. */
export function parseTraceparent(text: string): (TraceContext & { readonly isSampled: boolean }) | undefined {
  const [, version, traceId, spanId, flags = '', more] = header.exec(text) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  const context = contextOf(traceId, spanId)
  return context === undefined ? undefined : { ...context, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

const field = Buffer.from('"trace":"')
const fieldLength = 32 + 1 + 16

/** Where a trace stands: where its field begins. */
interface FoundTrace {
  readonly trace: TraceContext
  readonly at: number
}

/**
 * Finds the traces in records without parsing them, one after the other. A quote within a text is escaped, so that no
 * text in a record's value looks like the field; the key of a record may.
 */
export function* findTraces(bytes: Buffer, start: number, end: number): Generator<FoundTrace> {
  let at = bytes.indexOf(field, start)
  while (at !== -1 && at + field.length + fieldLength < end) {
    const from = at + field.length
    const trace = parseTrace(bytes.toString('latin1', from, from + fieldLength))
    if (trace !== undefined) yield { trace, at }
    at = bytes.indexOf(field, from)
  }
}
