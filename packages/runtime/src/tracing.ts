import type { Attributes, Link } from '@opentelemetry/api'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace'
import { type Config, choice, decimal, filePath, secret, text, url } from './read-config.ts'
import { registerScraped } from './scraped-metrics.ts'
import { createSampler, type Sampler, samplers } from './span-sampler.ts'
import type { Service } from './start-service.ts'
import { version } from './version.ts'
import { withTimeout } from './with-timeout.ts'

/** A percent sign begins two hex digits. */
const headersForm = /^(?:[^=,%]+=(?:[^,%]|%[0-9a-fA-F]{2})*(?:,|$))*$/

const endpoint = (name: 'OTEL_EXPORTER_OTLP_ENDPOINT' | 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', about: string) =>
  url({ name, about, protocols: ['http:', 'https:'], emptyAllowed: true, fallback: '' })

/** OpenTelemetry's own variables. Its exporter reads the others of OTLP, such as the timeout, by itself. */
export const tracingVariables = {
  otlpEndpoint: endpoint(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'the OTLP/HTTP address of a collector, to which /v1/traces is added; empty for no traces',
  ),
  otlpTracesEndpoint: endpoint('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'the same for traces alone, used as it is'),
  otlpHeaders: secret({
    ...text({
      name: 'OTEL_EXPORTER_OTLP_HEADERS',
      about: 'headers for the collector, such as its token',
      fallback: '',
    }),
    parse: (value) =>
      headersForm.test(value)
        ? { value }
        : { problem: 'must be name=value,name=value, with values escaped as in URLs' },
  }),
  otlpCertificate: filePath({
    name: 'OTEL_EXPORTER_OTLP_CERTIFICATE',
    about: "CA certificates for the collector, in PEM; empty: the system's authorities",
  }),
  resourceAttributes: text({
    name: 'OTEL_RESOURCE_ATTRIBUTES',
    about: 'resource attributes of spans: name=value,name=value',
    fallback: '',
  }),
  serviceName: text({
    name: 'OTEL_SERVICE_NAME',
    about: 'service name of spans; empty: weir- and the name of the process',
    fallback: '',
  }),
  tracesSampler: choice({
    name: 'OTEL_TRACES_SAMPLER',
    about: 'which requests are traced; parentbased samplers follow the decision of a trusted proxy',
    fallback: 'parentbased_traceidratio',
    of: samplers,
  }),
  tracesSamplerArg: decimal({
    name: 'OTEL_TRACES_SAMPLER_ARG',
    about: 'share of requests to trace, for samplers with a ratio',
    fallback: '0.01',
    min: 0,
    max: 1,
  }),
} as const

/** Spans that wait for the collector, or are on their way; what comes beyond is dropped and counted. */
const waitingMax = 2_048
const batchMax = 512
/** A span is at the collector within about a second. */
const everyMs = 1_000
const exportDeadlineMs = 10_000
/** A stop does not wait longer for a collector. */
const closeDeadlineMs = 2_000

/** OpenTelemetry's numbers of its kinds of spans. */
const kinds = { internal: 0, server: 1, client: 2, producer: 3, consumer: 4 } as const

/** A span that has ended. Times are milliseconds since the epoch, with fractions. */
export interface EndedSpan {
  readonly name: string
  readonly kind: keyof typeof kinds
  /** 32 hex digits, and 16 for a span. */
  readonly traceId: string
  readonly spanId: string
  /** Undefined for the first span of its trace. */
  readonly parentSpanId?: string | undefined
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Attributes
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly isError?: boolean
}

/** What a service traces with, where a collector is named. */
export interface Tracing {
  /** Whether a request is traced. */
  readonly sample: Sampler
  /** Takes a span for the next export. Never waits; beyond its bound it drops the span. */
  record(span: EndedSpan): void
}

const hrTime = (ms: number): [number, number] => [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1e6)]
const sampled = 1
const contextOf = (traceId: string, spanId: string) => ({ traceId, spanId, traceFlags: sampled })

/** The shape in which OpenTelemetry's exporter takes spans. */
function readableSpan(span: EndedSpan, of: Pick<ReadableSpan, 'resource' | 'instrumentationScope'>): ReadableSpan {
  const { name, kind, traceId, spanId, parentSpanId, startMs, endMs, attributes, links = [], isError } = span
  const context = contextOf(traceId, spanId)
  return {
    ...of,
    name,
    kind: kinds[kind],
    spanContext: () => context,
    ...(parentSpanId === undefined ? {} : { parentSpanContext: contextOf(traceId, parentSpanId) }),
    startTime: hrTime(startMs),
    endTime: hrTime(endMs),
    duration: hrTime(Math.max(0, endMs - startMs)),
    status: { code: isError === true ? 2 : 0 },
    attributes,
    links: links.map((link): Link => ({ context: contextOf(link.traceId, link.spanId) })),
    events: [],
    ended: true,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

/** Reads `name=value,name=value`, with the values escaped as in URLs. */
function headersOf(list: string): Record<string, string> {
  const pairs = list.split(',').map((one): [string, string] => {
    const at = one.indexOf('=')
    return [one.slice(0, at).trim(), decodeURIComponent(one.slice(at + 1).trim())]
  })
  return Object.fromEntries(pairs.filter(([name]) => name !== ''))
}

/**
 * Opens the way of spans to the collector that the environment names. Without one it returns undefined, and no module
 * of OpenTelemetry's SDK is loaded.
 */
export async function openTracing(
  config: Config<typeof tracingVariables>,
  name: string,
  { run, metrics, log }: Pick<Service, 'run' | 'metrics' | 'log'>,
): Promise<Tracing | undefined> {
  const counts = { exported: 0, failed: 0, dropped: 0 }
  registerScraped(metrics, {
    weir_spans_total: { help: 'Trace spans by result', label: 'result', readAll: () => counts },
  })
  if (config.otlpEndpoint === '' && config.otlpTracesEndpoint === '') return undefined
  const [
    { OTLPTraceExporter },
    { BatchSpanProcessor },
    { detectResources, resourceAttributesEnvDetector, resourceFromAttributes },
  ] = await Promise.all([
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/resources'),
  ])
  let waiting = 0
  let isFailing = false
  // It reads the variable by itself, but no file.
  const { file, text: headers } = config.otlpHeaders
  const otlp = new OTLPTraceExporter(file === undefined ? {} : { headers: headersOf(headers) })
  const exporter: SpanExporter = {
    export: (spans, done) =>
      otlp.export(spans, (result) => {
        waiting -= spans.length
        counts[result.code === 0 ? 'exported' : 'failed'] += spans.length
        if (result.code !== 0 && !isFailing) log.warn({ err: result.error }, 'the collector does not accept spans')
        isFailing = result.code !== 0
        done(result)
      }),
    shutdown: () => otlp.shutdown(),
  }
  const processor = new BatchSpanProcessor({
    exporter,
    maxQueueSize: waitingMax,
    maxExportBatchSize: batchMax,
    scheduledDelayMillis: everyMs,
    exportTimeoutMillis: exportDeadlineMs,
  })
  await run.own('tracing', processor, (one) =>
    withTimeout(
      one.shutdown().catch(() => undefined),
      closeDeadlineMs,
      undefined,
    ),
  )
  const resource = resourceFromAttributes({ 'service.version': version, 'service.instance.id': crypto.randomUUID() })
    .merge(detectResources({ detectors: [resourceAttributesEnvDetector] }))
    .merge(resourceFromAttributes({ 'service.name': config.serviceName || `weir-${name}` }))
  const of = { resource, instrumentationScope: { name: 'weir', version } }
  return {
    sample: createSampler(config.tracesSampler, config.tracesSamplerArg),
    record(span) {
      if (waiting >= waitingMax) {
        counts.dropped += 1
        return
      }
      waiting += 1
      processor.onEnd(readableSpan(span, of))
    },
  }
}
