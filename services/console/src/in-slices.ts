import { setImmediate } from 'node:timers/promises'
import type { Steps } from '@weir/core/steps.ts'

/** Requests wait no longer than this for a large policy; a pause costs microseconds. */
const sliceMs = 10

/** Does all steps, and lets the event loop go on between them. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  let startMs = performance.now()
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (performance.now() - startMs < sliceMs) continue
    await setImmediate()
    startMs = performance.now()
  }
}
