import { Counter, Gauge, Histogram as HistogramMetric, type Registry } from 'prom-client'
import type { Histogram } from './histogram.ts'

/** What a part counts itself, with its description. */
type Metric = { readonly help: string } & (
  | { readonly read: () => number }
  /** By the value of a label, of which there are few. */
  | { readonly label: string; readonly readAll: () => Readonly<Record<string, number>> }
  /** By the values of several labels. */
  | { readonly labels: readonly string[]; readonly cells: () => Series<number> }
  | { readonly histogram: Histogram }
  | { readonly labels: readonly string[]; readonly histograms: () => Series<Histogram> }
)

type Series<Value> = Iterable<readonly [labels: readonly string[], value: Value]>

/** Weir's own, and those of OpenTelemetry's conventions for generative AI. */
type MetricSet = Readonly<Record<`weir_${string}` | `gen_ai_${string}`, Metric>>

interface Sample {
  readonly labels: Record<string, string>
  readonly value: number
  /** Where it is not the metric's. */
  readonly metricName?: string
}

/**
 * Registers numbers that the parts of a service keep as plain fields: they are read at a scrape, so that the hot path
 * pays nothing for them. Names that end in `_total` are counters, others gauges or histograms. What is 0 is shown from
 * the start, so that a rate counts the first event too.
 */
export function registerScraped(register: Registry, metrics: MetricSet): void {
  for (const [name, metric] of Object.entries(metrics)) registerOne(register, name, metric)
}

function registerOne(register: Registry, name: string, metric: Metric): void {
  const labelNames = 'labels' in metric ? metric.labels : 'label' in metric ? [metric.label] : []
  const isHistogram = 'histogram' in metric || 'histograms' in metric
  const Kind = isHistogram ? HistogramMetric : name.endsWith('_total') ? Counter : Gauge
  const registered = new Kind({ name, help: metric.help, labelNames, registers: [register] })
  // prom-client keeps no number of it: what it would show is read instead.
  const { type } = registered as unknown as { readonly type: string }
  const get = async () => ({ name, help: metric.help, type, aggregator: 'sum', values: [...samplesOf(name, metric)] })
  Object.assign(registered, { get, getForPromString: get })
}

function* samplesOf(name: string, metric: Metric): Iterable<Sample> {
  if ('read' in metric) yield { labels: {}, value: metric.read() }
  else if ('readAll' in metric) {
    for (const [label, value] of Object.entries(metric.readAll())) yield { labels: { [metric.label]: label }, value }
  } else if ('cells' in metric) {
    for (const [values, value] of metric.cells()) yield { labels: labelled(metric.labels, values), value }
  } else if ('histogram' in metric) yield* bucketsOf(name, {}, metric.histogram)
  else {
    for (const [values, one] of metric.histograms()) yield* bucketsOf(name, labelled(metric.labels, values), one)
  }
}

const labelled = (names: readonly string[], values: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']))

/** Buckets are shown cumulated, as the format wants it. */
function* bucketsOf(name: string, labels: Record<string, string>, histogram: Histogram): Iterable<Sample> {
  const { bounds, cells } = histogram
  let count = 0
  for (const [at, le] of [...bounds.map(String), '+Inf'].entries()) {
    count += cells[at] ?? 0
    yield { labels: { ...labels, le }, value: count, metricName: `${name}_bucket` }
  }
  yield { labels, value: histogram.sum, metricName: `${name}_sum` }
  yield { labels, value: count, metricName: `${name}_count` }
}
