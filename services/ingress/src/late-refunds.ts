import type { LimitRequest, ScopeValues } from '@weir/core/limits/limit-store.ts'
import type { About } from './correction-record.ts'

/** A denial of which nobody knew whether it was charged. */
interface Unsure {
  readonly id: string
  readonly about: About
  readonly request: LimitRequest
}

/**
 * Ties the store, which gives back what a late reply charged, to the record of the decision that was answered without it. Both
 * know the request's scope: whoever stands between them may copy the request.
 */
export interface LateRefunds {
  note(unsure: Unsure): void
  /** The charge of this request was given back. Tells of each decision once. */
  refunded(request: LimitRequest): void
  /** From now on, refunds are told to this. */
  tellTo(listener: (unsure: Unsure) => void): void
}

export function createLateRefunds(): LateRefunds {
  const decisions = new WeakMap<ScopeValues, Unsure>()
  let tell: (unsure: Unsure) => void = () => undefined
  return {
    note: (unsure) => void decisions.set(unsure.request.scope, unsure),
    refunded({ scope, askedScope = scope }) {
      const unsure = decisions.get(askedScope)
      if (unsure === undefined) return
      decisions.delete(askedScope)
      tell(unsure)
    },
    tellTo(listener) {
      tell = listener
    },
  }
}
