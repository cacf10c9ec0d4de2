import { type PeriodBoundaries, type PeriodUnit, periodUnits } from '../limits/limit.ts'
import { periodBoundaries } from './calendar.ts'

/** Time zones remembered; there are about 600, and a policy names fewer. Beyond, the cache starts again. */
const zonesMax = 1_000
const anchorsMax = 32

/**
 * `periodBoundaries` for the hot path: computed once per unit, zone and anchor and period, then looked up. A clock that
 * steps back is answered right, only slower.
 */
export function createBoundaryCache(): typeof periodBoundaries {
  const zones = new Map<string, (PeriodBoundaries | undefined)[]>()
  return function cachedPeriodBoundaries(unit: PeriodUnit, timeZone: string, anchor: number, nowMs: number) {
    let known = zones.get(timeZone)
    if (known === undefined) {
      if (zones.size >= zonesMax) zones.clear()
      known = new Array(periodUnits.length * anchorsMax).fill(undefined)
      zones.set(timeZone, known)
    }
    const slot = periodUnits.indexOf(unit) * anchorsMax + anchor
    const last = known[slot]
    if (last !== undefined && last[0] <= nowMs && nowMs < last[1]) return last
    const boundaries = periodBoundaries(unit, timeZone, anchor, nowMs)
    known[slot] = boundaries
    return boundaries
  }
}
