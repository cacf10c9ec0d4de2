import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'
import type { Settling } from './decide/correct/settle.ts'

/** How many decisions were corrected after the fact, and which corrections the sums do not know of. */
export function registerCorrections(register: Registry, settling: Pick<Settling, 'counters'>): void {
  registerScraped(register, {
    weir_corrections_total: {
      help: 'Correction records of decisions that were settled or given back',
      read: () => settling.counters.recorded,
    },
    weir_corrections_lost_total: {
      help: 'Charges given back whose correction record the journal did not take',
      read: () => settling.counters.lost,
    },
  })
}
