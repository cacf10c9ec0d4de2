/**
 * The twin of lua/lib/ends.lua: amounts by the second at which they end, in the order of the value in Redis; below 0
 * that of refused ones.
 */
export type Ends = ReadonlyMap<number, number>

const longestS = 100_000

/** The second at which what is taken then ends; rounded up by at most an eighth. */
export function endAfter(keptMs: number, nowMs: number): number {
  let widthS = 1
  while (widthS * 16_000 <= keptMs) widthS *= 2
  return Math.ceil((nowMs + keptMs) / (widthS * 1_000)) * widthS
}

/** What has not ended. */
export const alive = (ends: Ends | undefined, nowS: number): Map<number, number> =>
  new Map([...(ends ?? [])].filter(([at, n]) => Math.abs(at) > nowS && Math.abs(at) - nowS <= longestS && n > 0))

/** Of many ends the next one that is there is taken. */
const heldEndsMax = 24

/** The same with so much more held until then, or less below 0, as `change_held` of lua/algorithms/fixed-window.lua. */
export function changedHeld(ends: Ends = new Map(), endS: number, amount: number): Ends {
  const isKnown = ends.has(endS) || (amount > 0 && ends.size < heldEndsMax)
  const later = [...ends.keys()].filter((one) => one > endS)
  const near = later.length > 0 ? Math.min(...later) : Math.max(...ends.keys())
  const at = isKnown || ends.size === 0 ? endS : near
  const before = ends.get(at)
  if (amount <= 0 && before === undefined) return ends
  return new Map(ends).set(at, Math.max(0, (before ?? 0) + amount))
}

/** All that were not refused. */
export const sumOf = (ends: Ends): number => [...ends].reduce((total, [at, n]) => (at > 0 ? total + n : total), 0)
