/** What an alert is about; `ce_type`. */
export const alertTypes = [
  'weir.quota.reached',
  'weir.quota.forecast',
  'weir.budget.reached',
  'weir.limit.blocked',
  'weir.denied_rate.high',
  'weir.allowed.high',
  'weir.allowed.dropped',
  'weir.alerts.digest',
  'weir.endpoint.disabled',
  'weir.endpoint.test',
] as const
/** One of `alertTypes`. */
export type AlertType = (typeof alertTypes)[number]
