/** What an alert is about; `ce_type`. */
export const alertTypes = [
  'weir.quota.reached',
  'weir.quota.resolved',
  'weir.quota.forecast',
  // No longer raised; earlier releases did, and policies name it.
  'weir.budget.reached',
  'weir.limit.blocked',
  'weir.denied_rate.high',
  'weir.allowed.high',
  'weir.allowed.dropped',
  // As weir.budget.reached.
  'weir.alerts.digest',
  'weir.endpoint.disabled',
  'weir.endpoint.test',
] as const
/** One of `alertTypes`. */
export type AlertType = (typeof alertTypes)[number]

/** The outcomes of a step of a delivery. */
export const deliveryOutcomes = [
  /** It waits in the queue for its first attempt. */
  'queued',
  /** A person requested it again; the first attempt follows. */
  'requested',
  /** The endpoint accepted it. */
  'delivered',
  /** The endpoint did not accept it, and another attempt follows at `next_try`. */
  'failed',
  /** The last attempt failed: the alert is a dead letter until a person redelivers it. */
  'given_up',
  /** Nothing was sent: the endpoint is disabled, or no longer in the policy. */
  'dropped',
  /** Nothing was sent, for a silence; `error` names it. */
  'silenced',
] as const
/** The outcome of a step of a delivery. */
export type DeliveryOutcome = (typeof deliveryOutcomes)[number]
