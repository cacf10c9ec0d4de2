import { randomBytes } from 'node:crypto'
import { findTraces, formatTraceparent, newSpanId, type TraceContext } from '@weir/contracts/trace-context.ts'
import type { Tracing } from '@weir/runtime/tracing.ts'
import type { BlockRecord } from './ports.ts'

/** Traced decisions of a block that get spans, the first ones; it is as many as a span should have links. */
const tracedMax = 32

/** The records of one partition of a block. */
interface TracedPart {
  readonly records: readonly BlockRecord[]
}

/** The records whose values lie one behind the other in one buffer. */
function* runsOf({ records }: TracedPart): Generator<readonly BlockRecord[]> {
  let run: BlockRecord[] = []
  for (const record of records) {
    if (run.length > 0 && record.bytes !== run[0]?.bytes) {
      yield run
      run = []
    }
    if (record.valueStart >= 0) run.push(record)
  }
  if (run.length > 0) yield run
}

/** Finds the traced decisions of a block. What stands between values, as a key does, is no trace. */
function tracesOf(parts: readonly TracedPart[]): TraceContext[] {
  const found: TraceContext[] = []
  for (const run of parts.flatMap((part) => [...runsOf(part)])) {
    const [first, last] = [run[0], run.at(-1)]
    if (first === undefined || last === undefined) continue
    let index = 0
    for (const { trace, at } of findTraces(first.bytes, first.valueStart, last.valueEnd)) {
      while ((run[index]?.valueEnd ?? Number.POSITIVE_INFINITY) <= at) index += 1
      if (at < (run[index]?.valueStart ?? Number.POSITIVE_INFINITY)) continue
      found.push(trace)
      if (found.length >= tracedMax) return found
    }
  }
  return found
}

/**
 * The spans of a block with traced decisions: one in a trace of its own, linked to each of them, and in the trace of
 * each what metering did with it, linked back.
 */
export class BlockTrace {
  readonly #tracing: Tracing
  readonly #topic: string
  readonly #table: string
  readonly #decisions: readonly TraceContext[]
  readonly #own: TraceContext = { traceId: randomBytes(16).toString('hex'), spanId: newSpanId() }
  readonly #startedMs = Date.now()
  #insertMs = this.#startedMs
  #insertedMs = this.#startedMs

  private constructor(tracing: Tracing, topic: string, table: string, decisions: readonly TraceContext[]) {
    this.#tracing = tracing
    this.#topic = topic
    this.#table = table
    this.#decisions = decisions
  }

  /** Returns undefined for a block without traced decisions, as nearly all are. */
  static begin(
    tracing: Tracing,
    { topic, table }: { readonly topic: string; readonly table: string },
    parts: readonly TracedPart[],
  ): BlockTrace | undefined {
    const decisions = tracesOf(parts)
    return decisions.length === 0 ? undefined : new BlockTrace(tracing, topic, table, decisions)
  }

  /** For ClickHouse, which writes it into its own log of spans. */
  get traceparent(): string {
    return formatTraceparent(this.#own)
  }

  insertBegins(): void {
    this.#insertMs = Date.now()
  }

  insertEnded(): void {
    this.#insertedMs = Date.now()
  }

  /** The block is written and committed. */
  committed(about: { readonly rows: number; readonly partitions: number; readonly isRecovery: boolean }): void {
    const { rows, partitions, isRecovery } = about
    const [topic, name] = [this.#topic, `insert ${this.#table}`]
    const inserted = { startMs: this.#insertMs, endMs: this.#insertedMs }
    const database = { 'db.system.name': 'clickhouse', 'db.collection.name': this.#table }
    const attributes = { ...database, 'weir.rows': rows, 'weir.partitions': partitions, 'weir.recovery': isRecovery }
    const links = this.#decisions
    this.#tracing.record({ ...this.#own, name, kind: 'client', ...inserted, attributes, links })
    for (const { traceId, spanId: parentSpanId } of this.#decisions) {
      const process = { traceId, spanId: newSpanId() }
      this.#tracing.record({
        ...process,
        parentSpanId,
        name: `process ${topic}`,
        kind: 'consumer',
        links: [this.#own],
        startMs: this.#startedMs,
        endMs: Date.now(),
        attributes: {
          'messaging.system': 'kafka',
          'messaging.operation.type': 'process',
          'messaging.destination.name': topic,
        },
      })
      const insert = { traceId, spanId: newSpanId(), parentSpanId: process.spanId, ...inserted }
      this.#tracing.record({ ...insert, name, kind: 'client', attributes: database, links: [this.#own] })
    }
  }
}
