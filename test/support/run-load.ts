import type { Decision } from '@weir/core/limits/decision.ts'
import type { LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'

export interface Answer {
  readonly decision: Decision
  readonly waitedMs: number
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

/** So many clients that each ask again as soon as they were answered. */
export function runLoad(store: LimitStore, clients: number, request: LimitRequest) {
  const answers: Answer[] = []
  let isStopped = false
  const client = async () => {
    while (!isStopped) {
      const startedMs = performance.now()
      const decision = await store.decide(request)
      answers.push({ decision, waitedMs: performance.now() - startedMs })
      await nextTurn() // what is answered at once must not keep the event loop from reading
    }
  }
  const all = Promise.all(Array.from({ length: clients }, client))
  return {
    /** In the order in which they came. */
    answers,
    async stop() {
      isStopped = true
      await all
    },
  }
}
