import { Counter, Gauge, type Registry } from 'prom-client'

/** A number that a part counts itself, with its description. */
export interface Scraped {
  readonly help: string
  readonly read: () => number
}

/** Numbers by the value of a label, of which there are few. */
export interface ScrapedBy {
  readonly help: string
  readonly label: string
  readonly readAll: () => Readonly<Record<string, number>>
}

type Named = Readonly<Record<`weir_${string}`, Scraped | ScrapedBy>>

/**
 * Registers numbers that the parts of a service keep as plain fields: they are read at a scrape, so that the hot path
 * pays nothing for them. Names that end in `_total` are counters, others gauges.
 */
export function registerScraped(register: Registry, metrics: Named): void {
  for (const [name, metric] of Object.entries(metrics)) {
    const collect = function (this: Counter | Gauge) {
      this.reset()
      const numbers = 'label' in metric ? Object.entries(metric.readAll()) : [['', metric.read()] as const]
      for (const [value, number] of numbers) {
        const labels = 'label' in metric ? { [metric.label]: value } : {}
        if (this instanceof Gauge) this.set(labels, number)
        else this.inc(labels, number)
      }
    }
    const labelNames = 'label' in metric ? [metric.label] : []
    const Kind = name.endsWith('_total') ? Counter : Gauge
    new Kind({ name, help: metric.help, labelNames, registers: [register], collect })
  }
}
