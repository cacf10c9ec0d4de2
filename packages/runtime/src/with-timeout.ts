/**
 * Returns what the promise resolves to, or `fallback` once `ms` have passed. The promise is not cancelled: a result
 * that comes later is dropped, a late rejection too. Rejects if the promise rejects in time.
 */
export async function withTimeout<T, F>(promise: Promise<T>, ms: number, fallback: F): Promise<T | F> {
  const { promise: timeout, resolve } = Promise.withResolvers<F>()
  const timer = setTimeout(() => resolve(fallback), Math.max(0, ms))
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
