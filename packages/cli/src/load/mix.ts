import type { LoadRoute } from './profile.ts'
import type { LoadRequest } from './sender.ts'

/** Picks positions at random, each as often as its weight says. */
function picker(weights: readonly number[]): () => number {
  let sum = 0
  const sums = Float64Array.from(weights, (weight) => (sum += weight))
  return () => {
    const wanted = Math.random() * sum
    let [low, high] = [0, sums.length - 1]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((sums[middle] ?? 0) > wanted) high = middle
      else low = middle + 1
    }
    return low
  }
}

/** Returns what picks the next request: a subject by Zipf's law, a route by its share. Equal ones are one object. */
export function createMix(subjects: readonly string[], routes: readonly LoadRoute[], skew: number): () => LoadRequest {
  const subjectAt = picker(subjects.map((_, at) => 1 / (at + 1) ** skew))
  const routeAt = picker(routes.map(({ share }) => share))
  const known = new Map<number, LoadRequest>()
  return () => {
    const [subject, route] = [subjectAt(), routeAt()]
    const at = subject * routes.length + route
    const found = known.get(at)
    if (found !== undefined) return found
    const { method = 'GET', path = '/', cost } = routes[route] ?? {}
    const asked = { subject: subjects[subject] ?? '', method, path, cost }
    // A million in all; the others are made each time, and are equal all the same.
    if (known.size < 1_000_000) known.set(at, asked)
    return asked
  }
}
