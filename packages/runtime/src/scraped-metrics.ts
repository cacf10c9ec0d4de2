import { Counter, Gauge, type Registry } from 'prom-client'

/** A number that a part counts by itself, and what a person reads about it. */
export interface Scraped {
  readonly help: string
  readonly read: () => number
}

type Named = Readonly<Record<`weir_${string}`, Scraped>>

/**
 * Registers numbers that the parts of a service keep as plain fields: they are read when somebody scrapes, so that the hot
 * path pays nothing for them. Names that end in `_total` are counters, others gauges.
 */
export function registerScraped(register: Registry, metrics: Named): void {
  for (const [name, { help, read }] of Object.entries(metrics)) {
    const registers = [register]
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
