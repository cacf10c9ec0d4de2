import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { encodeKeyPart } from '@weir/core/key-encoding.ts'

/**
 * What a job of the queue carries: the alert as it was published, where it goes, and how far that has come. No secret.
 */
export interface DeliveryJob {
  readonly alert: AlertV1
  /** Its name in the policy. */
  readonly endpoint: string
  /** When somebody asked for it once more, in milliseconds since the epoch; 0 for a first delivery. */
  readonly requestedMs: number
  /** Attempts that were made. */
  readonly attempts: number
  /** No attempt is made before; milliseconds since the epoch. */
  readonly dueMs: number
  /** After it nothing is tried any more. */
  readonly giveUpMs: number
}

/** The job of an alert, an endpoint and a request: Kafka or the sweep, queueing the same again, finds it. */
export function jobIdOf({ alert, endpoint, requestedMs }: Pick<DeliveryJob, 'alert' | 'endpoint' | 'requestedMs'>) {
  return `${alert.id}.${encodeKeyPart(endpoint)}${requestedMs === 0 ? '' : `.${requestedMs}`}`
}
