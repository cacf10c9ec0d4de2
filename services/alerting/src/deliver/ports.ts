import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import type { Endpoint } from '@weir/policy/policy.ts'

/** How one attempt went. */
export interface AttemptResult {
  /** Of the answer, by HTTP or SMTP; 0 for none. */
  readonly status: number
  /** Why it failed; undefined where the endpoint took the alert. */
  readonly error?: string
  /** The endpoint asks not to be tried again for so long. */
  readonly retryAfterMs?: number | undefined
  /** It wants no more alerts, ever. */
  readonly isGone?: boolean
  /** The beginning of the answer's body. */
  readonly answer: string
}

/** Makes one attempt. Never rejects, and ends within its own deadline. */
export type SendAlert<E extends Endpoint = Endpoint> = (endpoint: E, alert: AlertV1) => Promise<AttemptResult>

/** Keeps what became of attempts. Resolves when they are safe; they may come to the table later. */
export type RecordDeliveries = (deliveries: readonly DeliveryV1[]) => Promise<void>
