import { type DeliveryOutcome, deliveryOutcomes } from '@weir/core/alerts/alert-types.ts'
import { type Checks, isCount, isOneOf, isText, isTs, isUuid, parseJson, wrongField } from './fields.ts'

/** Attempts that are made at most before a delivery is given up; fewer if its time is over earlier. */
export const deliveryAttemptsMax = 10

/**
 * An alert is tried for this long from its first attempt, including the time in which its endpoint's circuit was open.
 */
export const giveUpAfterMs = 4 * 24 * 3_600_000

/**
 * One step of a delivery, mostly an attempt: the value of a record in `weir.deliveries.v1`, whose key is the alert's
 * id, and a row of `weir.deliveries`.
 */
export interface DeliveryV1 {
  readonly alert_id: string
  readonly alert_type: string
  readonly subject: string
  /** The endpoint's name in the policy. */
  readonly endpoint: string
  /** Counts from 1, and from 1 again after a request; 0 where nothing was sent yet. */
  readonly attempt: number
  /** `YYYY-MM-DD hh:mm:ss.SSS` UTC: when it began. */
  readonly at: string
  readonly outcome: DeliveryOutcome
  /** The status of the answer; 0 for none. */
  readonly status: number
  readonly ms: number
  /** Why the attempt failed; empty if it did not. */
  readonly error: string
  /** Time of the next attempt; null for none. */
  readonly next_try: string | null
  /** The beginning of the answer's body, as it came. */
  readonly answer: string
}

/** The result of reading a record. */
export type ParsedDelivery =
  | { readonly kind: 'delivery'; readonly delivery: DeliveryV1 }
  | { readonly kind: 'unreadable'; readonly reason: string }

/** Checks that a value is a count that its column holds. */
const isUpTo = (max: number) => (value: unknown) => isCount(value) && value <= max

const fields: Checks<keyof DeliveryV1> = {
  alert_id: isUuid,
  alert_type: isText,
  subject: isText,
  endpoint: isText,
  attempt: isUpTo(65_535),
  at: isTs,
  outcome: isOneOf(deliveryOutcomes),
  status: isUpTo(65_535),
  ms: isUpTo(4_294_967_295),
  error: isText,
  next_try: (value) => value === null || isTs(value),
  answer: isText,
}
const isDelivery = (value: unknown): value is DeliveryV1 => wrongField(value, fields) === undefined

/** Reads a record. Never throws. */
export function parseDelivery(value: Buffer | null): ParsedDelivery {
  const delivery = parseJson(value?.toString('utf8') ?? '')
  if (isDelivery(delivery)) return { kind: 'delivery', delivery }
  const what = delivery === undefined ? 'the value is not JSON' : 'a field of the value is missing or wrong'
  return { kind: 'unreadable', reason: what }
}
