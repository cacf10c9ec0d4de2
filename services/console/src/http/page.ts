/**
 * Makes a page of rows of which one more was read than the page may have; `nextOf` gives `next` by the page's last row.
 */
export function pageOf<T>(found: readonly T[], limit: number, nextOf: (last: T) => string) {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return { items, next: found.length > limit && last !== undefined ? nextOf(last) : null }
}
