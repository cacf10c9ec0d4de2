/** The twin of lua/lib/ends.lua: amounts by the second at which they end, in the order of the value in Redis. */
export type Ends = ReadonlyMap<number, number>

const longestS = 100_000

/** The second at which what is taken then ends; rounded up by at most an eighth. */
export function endAfter(keptMs: number, nowMs: number): number {
  let widthS = 1
  while (widthS * 16_000 <= keptMs) widthS *= 2
  return Math.ceil((nowMs + keptMs) / (widthS * 1_000)) * widthS
}

/** What has not ended. */
export function alive(ends: Ends | undefined, nowS: number): Map<number, number> {
  return new Map([...(ends ?? [])].filter(([endS, n]) => endS > nowS && endS - nowS <= longestS && n > 0))
}

/** The same with so much more at that end, or less below 0, as far as it is there. */
export function added(ends: Ends = new Map(), endS: number, amount: number): Ends {
  const before = ends.get(endS)
  if (amount <= 0 && before === undefined) return ends
  return new Map(ends).set(endS, Math.max(0, (before ?? 0) + amount))
}

/** All of them. */
export const sumOf = (ends: Ends): number => [...ends.values()].reduce((total, n) => total + n, 0)
