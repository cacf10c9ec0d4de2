import { Counter, Gauge, type Registry } from 'prom-client'

/** A number that a part counts by itself, and what a person reads about it. */
export interface Scraped {
  readonly help: string
  readonly read: () => number
}

/** Numbers of one kind apart, by the value of a label, of which there are few. */
export interface ScrapedBy {
  readonly help: string
  readonly label: string
  readonly readAll: () => Readonly<Record<string, number>>
}

type Named = Readonly<Record<`weir_${string}`, Scraped | ScrapedBy>>

/**
 * Registers numbers that the parts of a service keep as plain fields: they are read when somebody scrapes, so that the
 * hot path pays nothing for them. Names that end in `_total` are counters, others gauges.
 */
export function registerScraped(register: Registry, metrics: Named): void {
  for (const [name, metric] of Object.entries(metrics)) {
    const { help } = metric
    const registers = [register]
    if ('label' in metric) {
      const { label, readAll } = metric
      const collect = function (this: Counter | Gauge) {
        this.reset()
        for (const [value, count] of Object.entries(readAll())) this.inc({ [label]: value }, count)
      }
      ;new (name.endsWith('_total') ? Counter : Gauge)({ name, help, labelNames: [label], registers, collect })
      continue
    }
    const { read } = metric
    if (name.endsWith('_total')) {
      const collect = function (this: Counter) {
        this.reset()
        this.inc(read())
      }
      new Counter({ name, help, registers, collect })
    } else {
      const collect = function (this: Gauge) {
        this.set(read())
      }
      new Gauge({ name, help, registers, collect })
    }
  }
}
