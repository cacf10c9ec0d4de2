import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import type { Endpoint } from '@weir/policy/policy.ts'

/** The result of one attempt. */
export interface AttemptResult {
  /** The status of the HTTP or SMTP answer; 0 for none. */
  readonly status: number
  /** Why the attempt failed; undefined if the endpoint accepted the alert. */
  readonly error?: string
  /** The pause that the endpoint asks for. */
  readonly retryAfterMs?: number | undefined
  /** The endpoint answered that it is gone for good. */
  readonly isGone?: boolean
  /** The beginning of the answer's body. */
  readonly answer: string
}

/** Makes one attempt. Never rejects, and ends within its own deadline. */
export type SendAlert<E extends Endpoint = Endpoint> = (endpoint: E, alert: AlertV1) => Promise<AttemptResult>

/** Records the outcomes of attempts. Resolves when Kafka has them; the table gets them later. */
export type RecordDeliveries = (deliveries: readonly DeliveryV1[]) => Promise<void>
