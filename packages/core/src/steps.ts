/** Work in many small steps, so that a caller can do something else between two of them. */
export type Steps<T> = Generator<undefined, T, undefined>

/** Does all of it in one go. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
