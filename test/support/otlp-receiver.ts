import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { waitUntil } from '@weir/runtime/wait-until.ts'

type Value = string | number | boolean | undefined

/** A span as a collector gets it; times are milliseconds since the epoch. */
export interface ReceivedSpan {
  readonly service: Value
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  /** Empty for the first of its trace. */
  readonly parentSpanId: string
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, Value>>
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
}

/** The parts of OTLP's JSON that are read. */
interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: number; readonly boolValue?: boolean }
}
interface OtlpSpan extends Pick<ReceivedSpan, 'name' | 'kind' | 'traceId' | 'spanId'> {
  readonly parentSpanId?: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  readonly links?: ReceivedSpan['links']
}
interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

const valuesOf = (attributes: readonly Attribute[]) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? value.boolValue] as const),
  )
const msOf = (nanoseconds: string) => Number(BigInt(nanoseconds) / 1_000n) / 1_000

function spansOf({ resourceSpans }: Export): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map(({ name, kind, traceId, spanId, parentSpanId = '', links = [], ...span }) => ({
        service: valuesOf(resource.attributes)['service.name'],
        name,
        kind,
        traceId,
        spanId,
        parentSpanId,
        startMs: msOf(span.startTimeUnixNano),
        endMs: msOf(span.endTimeUnixNano),
        attributes: valuesOf(span.attributes),
        links,
      })),
  )
}

/** A collector that keeps every span, and answers as one that takes them. */
export async function openOtlpReceiver() {
  const spans: ReceivedSpan[] = []
  const server = createServer(async (request, response) => {
    const isTraces = request.method === 'POST' && request.url === '/v1/traces'
    if (isTraces) spans.push(...spansOf((await json(request)) as Export))
    response.writeHead(isTraces ? 200 : 404, { 'content-type': 'application/json' }).end('{}')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    /** Waits until a trace has spans of these names, and returns its spans by their names. */
    async trace(traceId: string, names: readonly string[], deadlineMs: number) {
      const of = () => spans.filter((span) => span.traceId === traceId)
      await waitUntil(() => names.every((name) => of().some((span) => span.name === name)), { deadlineMs })
      return Map.groupBy(of(), ({ name }) => name)
    },
    async close(): Promise<void> {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
