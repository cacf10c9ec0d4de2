/**
 * Every topic Weir writes or reads. infra/kafka/topics.json holds their partitions and retention; test/repo holds the
 * two together.
 */
export const topics = {
  decisions: 'weir.decisions.v1',
  decisionsDeadLetters: 'weir.decisions.v1.dlq',
  outcomes: 'weir.outcomes.v1',
  outcomesDeadLetters: 'weir.outcomes.v1.dlq',
  alerts: 'weir.alerts.v1',
  alertsDeadLetters: 'weir.alerts.v1.dlq',
  deliveries: 'weir.deliveries.v1',
  policy: 'weir.policy.v1',
} as const
