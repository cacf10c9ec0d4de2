/** Letters that may differ before a suggestion is no help any more. */
const distanceMax = 2
/** Names compared for one suggestion; with more known, guessing costs more than it helps. */
const candidatesMax = 2_000

/** `; did you mean size?` when one of the known names is near, else nothing. Case, `_` and `-` do not count. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const wanted = plainWord(word)
  let best: string | undefined
  let bestDistance = Math.min(distanceMax, Math.floor(wanted.length / 2)) + 1
  let compared = 0
  for (const candidate of known) {
    compared += 1
    if (compared > candidatesMax) break
    const distance = editDistance(wanted, plainWord(candidate))
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best === undefined ? '' : `; did you mean ${best}?`
}

/** A word as it is compared with others: in small letters, without `_` and `-`. */
export const plainWord = (text: string) => text.slice(0, 128).toLowerCase().replaceAll(/[_-]/g, '')

/** Insertions, deletions and replacements between the two (Levenshtein), or a large number when lengths rule it out. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > distanceMax) return Number.MAX_SAFE_INTEGER
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    if (Math.min(...next) > distanceMax) return Number.MAX_SAFE_INTEGER
    row = next
  }
  return row[b.length] ?? 0
}
