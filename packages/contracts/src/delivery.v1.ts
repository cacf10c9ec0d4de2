import { parseTs } from './timestamp.ts'

/** What happened to a delivery. */
const deliveryOutcomes = [
  /** It waits in the queue for its first attempt. */
  'queued',
  /** Somebody asked that it be delivered once more; the first attempt follows. */
  'requested',
  /** The endpoint took it. */
  'delivered',
  /** It did not, and there will be another attempt at `next_try`. */
  'failed',
  /** It did not, and there will be none: the alert is a dead letter until somebody redelivers it. */
  'given_up',
  /** Not sent: the endpoint is disabled, or the policy has it no more. */
  'dropped',
] as const
export type DeliveryOutcome = (typeof deliveryOutcomes)[number]

/**
 * One step of a delivery, mostly an attempt: the value of a record in `weir.deliveries.v1`, whose key is the alert's
 * id, and a row of `weir.deliveries`.
 */
export interface DeliveryV1 {
  readonly alert_id: string
  readonly alert_type: string
  readonly subject: string
  /** Its name in the policy. */
  readonly endpoint: string
  /** Counts from 1, and from 1 again after a request; 0 where nothing was sent yet. */
  readonly attempt: number
  /** `YYYY-MM-DD hh:mm:ss.SSS` UTC: when it began. */
  readonly at: string
  readonly outcome: DeliveryOutcome
  /** Of the answer; 0 for none. */
  readonly status: number
  readonly ms: number
  /** Why it failed; empty where it did not. */
  readonly error: string
  /** When it is tried again; null for never. */
  readonly next_try: string | null
  /** The beginning of the answer's body, as it came. */
  readonly answer: string
}

export type ParsedDelivery =
  | { readonly kind: 'delivery'; readonly delivery: DeliveryV1 }
  | { readonly kind: 'unreadable'; readonly reason: string }

const textFields = ['alert_id', 'alert_type', 'subject', 'endpoint', 'at', 'outcome', 'error', 'answer'] as const
/** Each with the most that its column holds. */
const numberFields = [
  ['attempt', 65_535],
  ['status', 65_535],
  ['ms', 4_294_967_295],
] as const
const isWithin = (value: unknown, max: number) =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= max
const isTs = (value: unknown) => typeof value === 'string' && parseTs(value) !== undefined
const idForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function isDelivery(value: unknown): value is DeliveryV1 {
  if (typeof value !== 'object' || value === null) return false
  const fields: Readonly<Record<string, unknown>> = { ...value }
  return (
    textFields.every((name) => typeof fields[name] === 'string') &&
    numberFields.every(([name, max]) => isWithin(fields[name], max)) &&
    isTs(fields.at) &&
    (fields.next_try === null || isTs(fields.next_try)) &&
    idForm.test(String(fields.alert_id)) &&
    deliveryOutcomes.some((known) => known === fields.outcome)
  )
}

/** Reads a record. Never throws. */
export function parseDelivery(value: Buffer | null): ParsedDelivery {
  try {
    const delivery: unknown = JSON.parse(value?.toString('utf8') ?? '')
    if (isDelivery(delivery)) return { kind: 'delivery', delivery }
    return { kind: 'unreadable', reason: 'a field of the value is missing or wrong' }
  } catch {
    return { kind: 'unreadable', reason: 'the value is not JSON' }
  }
}
