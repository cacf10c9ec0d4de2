/** The answer if it comes within this time; undefined when it does not, or fails. Nothing of it is awaited any longer then. */
export async function within<T>(ms: number, answer: Promise<T>): Promise<T | undefined> {
  const { promise: over, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => resolve(undefined), Math.max(0, ms))
  try {
    return await Promise.race([answer, over])
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}
