/** Series on which a rule fires, around the value that decides. */
export interface RuleCase {
  /** Samples in promtool's notation, by the series. Without the first of them the rule has nothing to say. */
  readonly series: (value: number) => Readonly<Record<string, string>>
  /** The value with which the rule fires, and one a hair away with which it does not. */
  readonly fires: number
  readonly silent: number
  /** Other rules that fire with it: with either value, or with the first alone. */
  readonly still?: readonly string[]
  readonly also?: readonly string[]
  /** How long the series are, if not `shortMinutes`; the longer ones have a sample a minute. */
  readonly minutes?: number
}

/** As long as all but a few rules look back; these series have a sample each half of a minute. */
export const shortMinutes = 35

const held = (value: number) => `${value}+0x${2 * shortMinutes}`
/** Another value for the last two minutes. */
const turns = (from: number, to: number) => `${from}+0x${2 * shortMinutes - 4} ${to}+0x4`
const grows = (perSecond: number) => `0+${perSecond * 30}x${2 * shortMinutes}`
/** The same of a process that ran for some minutes, started again, and ran for some more. */
const runs = (...pieces: readonly (readonly [minutes: number, perSecond: number])[]) =>
  pieces.map(([minutes, perSecond]) => `0+${perSecond * 60}x${minutes}`).join(' ')

const one = (series: string, samples: (value: number) => string, fires: number, silent: number): RuleCase => ({
  series: (value) => ({ [series]: samples(value) }),
  fires,
  silent,
})
const gauge = (series: string, fires: number, silent: number) => one(series, held, fires, silent)
/** A counter that may not go on growing. */
const rate = (series: string, fires: number, silent: number) => one(series, grows, fires, silent)
/** A counter of which one is too many. */
const any = (series: string) => one(series, (value) => turns(0, value), 1, 0)
/** A histogram whose p99 is at the bound: so many of 100 observations are within it. */
const p99 = (name: string, bound: string, above: string): RuleCase => ({
  series: (value) => ({
    [`${name}_bucket{instance="a",le="+Inf"}`]: grows(100),
    [`${name}_bucket{instance="a",le="${above}"}`]: grows(100),
    [`${name}_bucket{instance="a",le="${bound}"}`]: grows(value),
  }),
  fires: 98.9,
  silent: 99.1,
})

const allow = 'weir_decisions_total{outcome="allow",reason="ok"}'
const deny = 'weir_decisions_total{outcome="deny",reason="limit"}'
const unanswered = 'weir_decisions_total{outcome="deny",reason="journal_full"}'
const redisMemory = (value: number) => ({
  weir_redis_memory_used_bytes: held(value),
  weir_redis_memory_max_bytes: held(100),
})
const lag = (group: string, topic = 'weir.decisions.v1') =>
  `weir_consumer_lag_seconds{group="${group}",topic="${topic}",partition="0"}`
const journal = (bytes: string) => ({ weir_journal_bytes: bytes, weir_journal_max_bytes: held(1000) })

const slowly = 'SloBurnsSlowly ticket'

/** Of 100 events a second, the part that fails; `times` what the budget allows, for 70 minutes. */
const objective = (budget: number, series: (failed: string, all: string, good: string) => Record<string, string>) => ({
  series: (times: number) => {
    const failed = 100 * budget * times
    return series(runs([70, failed]), runs([70, 100]), runs([70, 100 - failed]))
  },
  minutes: 70,
  fires: 6.1,
  silent: 5.9,
  still: [slowly],
})
const delays = (name: string, budget: number, bound: string) =>
  objective(budget, (_, all, good) => ({ [`${name}_count`]: all, [`${name}_bucket{le="${bound}"}`]: good }))

/** Errors of so many times what the budget of "answered" allows, after good times, with a restart among them. */
const burns = (goodMinutes: number, badMinutes: number, fires: number, silent: number): RuleCase => ({
  series: (times) => {
    const half = badMinutes / 2
    const failed = 100 * 0.0005 * times
    return {
      [unanswered]: runs([goodMinutes, 0], [half, failed], [half, failed]),
      [allow]: runs([goodMinutes, 100], [half, 100 - failed], [half, 100 - failed]),
    }
  },
  minutes: goodMinutes + badMinutes,
  fires,
  silent,
})

/** By the alert and its severity; a rule that can fire for several reasons has a case for each. */
export const cases: Readonly<Record<string, RuleCase>> = {
  'SloBurnsFast page': { ...burns(360, 70, 14.5, 14.3), still: [slowly] },
  'SloBurnsFast page, within six hours': burns(2_880, 420, 6.1, 5.9),
  'SloBurnsSlowly ticket': burns(0, 4_320, 1.05, 0.95),
  'SloBurnsSlowly ticket, of enough events': {
    ...one(unanswered, (value) => runs([4_320, value / 259_200]), 101, 99),
    minutes: 4_320,
  },
  'SloBurnsFast page, exact': {
    ...objective(0.001, (failed, _, good) => ({
      'weir_decision_source_total{source="local"}': failed,
      'weir_decision_source_total{source="redis"}': good,
    })),
    still: [slowly, 'DecidedWithoutRedis ticket'],
  },
  'SloBurnsFast page, quick': delays('weir_decision_duration_seconds', 0.01, '0.01'),
  'SloBurnsFast page, alerted': delays('weir_alert_delay_seconds', 0.01, '5'),
  'SloBurnsFast page, delivered': delays('weir_delivery_delay_seconds', 0.05, '15'),
  'SloBurnsFast page, fresh': {
    ...one('weir_usage_complete_timestamp_seconds{rows="decisions"}', (behind) => `${-behind}+60x70`, 16, 15),
    minutes: 70,
    also: [slowly],
  },
  'SloBurnsFast page, fresh, where the console does not know': {
    series: (isUnknown) => ({
      'weir_ready{job="weir-console"}': held(1),
      'weir_usage_complete_timestamp_seconds{rows="decisions"}': isUnknown === 1 ? '_x70' : '0+30x70',
    }),
    fires: 1,
    silent: 0,
    also: [slowly],
  },

  'ServiceDown page': gauge('up{job="weir-metering"}', 0, 1),
  'NotReady page': gauge('weir_ready{job="weir-ingress"}', 0, 1),
  'NotReady ticket': {
    // A console that does not know the sums would miss the objective "fresh".
    series: (isReady) => ({
      'weir_ready{job="weir-console"}': held(isReady),
      'weir_usage_complete_timestamp_seconds{rows="decisions"}': '0+30x70',
    }),
    fires: 0,
    silent: 1,
  },
  'ReadinessWarns ticket': gauge('weir_ready_warnings', 1, 0),
  // A week after the minute at which the case is looked at.
  'CertificateEnds ticket': gauge('weir_tls_certificate_expiry_timestamp_seconds', 606_899, 606_900),
  'EventLoopBusy ticket': gauge('nodejs_eventloop_lag_p99_seconds{job="weir-ingress"}', 0.201, 0.2),

  'NoTraffic ticket': one(allow, (value) => `0+30x30 900+${value}x40`, 0, 0.01),
  'AllowedDropped ticket': { ...one(allow, (value) => runs([90, 10], [30, value]), 4.9, 5.1), minutes: 120 },
  'DeniedShareHigh ticket': {
    series: (share) => ({
      [deny]: runs([1_440, 0.5], [30, 10 * share]),
      [allow]: runs([1_440, 9.5], [30, 10 - 10 * share]),
    }),
    minutes: 1_470,
    fires: 0.21,
    silent: 0.19,
  },
  'DeniedShareHigh ticket, beside a day ago': {
    series: (share) => ({
      [deny]: runs([1_440, 1], [30, 10 * share]),
      [allow]: runs([1_440, 9], [30, 10 - 10 * share]),
    }),
    minutes: 1_470,
    fires: 0.31,
    silent: 0.29,
  },
  'TrafficSpike ticket': { ...one(allow, (value) => runs([1_440, 10], [30, value]), 33, 30), minutes: 1_470 },
  'TrafficSpike ticket, of little': {
    ...one(allow, (value) => runs([1_440, 2], [30, value]), 10.1, 9.9),
    minutes: 1_470,
  },
  'WaitingRoomFull ticket': gauge('weir_requests_waiting', 8_001, 8_000),
  'GuessingKeys ticket': rate('weir_credentials_rejected_total{cause="unknown"}', 20.1, 20),
  'AddressesOverflow ticket': any('weir_addresses_overflowed_total'),
  'SigningKeysUnreachable ticket': rate('weir_signing_key_fetches_total{result="failed"}', 0.01, 0),

  'RedisGone page': gauge('weir_redis_servers_gone', 1, 0),
  'DecidedWithoutRedis ticket': {
    series: (percents) => ({
      'weir_decision_source_total{source="unavailable"}': grows(percents),
      'weir_decision_source_total{source="redis"}': grows(100 - percents),
    }),
    fires: 0.101,
    silent: 0.099,
  },
  'RedisSlow ticket': p99('weir_redis_call_duration_seconds', '0.0125', '0.025'),
  'RedisScriptSlow ticket': {
    series: (value) => ({
      'weir_redis_command_seconds_total{server="a",command="evalsha"}': grows(value),
      'weir_redis_command_calls_total{server="a",command="evalsha"}': grows(100),
    }),
    fires: 0.101,
    silent: 0.099,
  },
  'RedisMemoryHigh ticket': { series: redisMemory, fires: 80.1, silent: 80 },
  'RedisMemoryFull page': { series: redisMemory, fires: 95.1, silent: 95, still: ['RedisMemoryHigh ticket'] },
  'RedisMemoryFull page, by its answers': {
    ...rate('weir_redis_errors_total{code="OOM"}', 0.01, 0),
    also: ['RedisErrors ticket'],
  },
  'RedisEvicts page': any('weir_redis_evicted_keys_total'),
  'RedisReplicaBehind ticket': gauge('weir_redis_replica_lag_bytes', 16_777_217, 16_777_216),
  'RedisWithoutReplica ticket': one(
    'weir_redis_replicas_connected{role="master"}',
    (now) => `2+0x20 ${now}+0x50`,
    1,
    2,
  ),
  'RedisPersistenceFails ticket': gauge('weir_redis_persistence_ok', 0, 1),
  'RedisLostData page': any('weir_redis_losses_total'),
  'RedisErrors ticket': rate('weir_redis_errors_total{code="READONLY"}', 0.01, 0),
  'RedisClientsHigh ticket': rate('weir_redis_rejected_connections_total', 0.01, 0),
  'RedisCpuHigh ticket': rate('weir_redis_cpu_seconds_total{server="a",mode="user"}', 0.71, 0.69),

  'JournalBehind ticket': gauge('weir_journal_oldest_waiting_seconds', 61, 60),
  'JournalFillsUp ticket': { series: (value) => journal(held(value)), fires: 501, silent: 500 },
  'JournalFillsUp page': {
    // At the end 510; at this rate in an hour 834, or 790.
    series: (value) => journal(`${510 - 70 * value}+${value}x70`),
    fires: 2.7,
    silent: 2.3,
    still: ['JournalFillsUp ticket'],
  },
  'JournalRefuses page': any('weir_journal_records_refused_total{topic="weir.decisions.v1"}'),
  'JournalRefuses page, for its disk': any('weir_journal_failed_writes_total'),
  'JournalDiskSlow ticket': p99('weir_journal_write_duration_seconds', '0.02', '0.05'),
  'JournalOrphaned ticket': gauge('weir_journals_adopted', 1, 0),

  'Uncounted page': any('weir_lost_records_total'),
  'Uncounted page, expired': any('weir_expired_records_total'),
  'Uncounted page, gaps': any('weir_journal_gaps_total'),
  'Uncounted page, corrections': any('weir_corrections_lost_total'),
  'Uncounted page, quarantined': any('weir_journal_records_quarantined_total'),
  'MeteringBehind ticket': gauge(lag('weir-metering'), 61, 60),
  'MeteringBehind page': { ...gauge(lag('weir-metering'), 901, 900), still: ['MeteringBehind ticket'] },
  'AlertingBehind ticket': gauge(lag('weir-alerting'), 61, 60),
  'AlertingBehind page': { ...gauge(lag('weir-alerting'), 901, 900), still: ['AlertingBehind ticket'] },
  'RetentionNear page': {
    ...gauge(lag('weir-alerting'), 302_401, 302_400),
    still: ['AlertingBehind page', 'AlertingBehind ticket'],
  },
  'RetentionNear page, of outcomes': {
    ...gauge(lag('weir-metering-outcomes', 'weir.outcomes.v1'), 129_601, 129_600),
    still: ['MeteringBehind page', 'MeteringBehind ticket'],
  },
  'PartitionStopped page': gauge('weir_consumer_stopped_partitions', 1, 0),
  'InsertsRetried ticket': rate('weir_insert_retries_total', 0.01, 0),
  'DeadLetters ticket': any('weir_dead_letters_total'),

  'DeliveriesGivenUp ticket': any('weir_deliveries_total{type="webhook",result="given_up"}'),
  'DeliveryQueueStuck ticket': gauge('weir_deliveries_oldest_ready_seconds', 61, 60),
  'CircuitsOpen ticket': {
    ...one('weir_endpoint_circuits_open{endpoint="ops"}', (value) => `${value}+0x70`, 1, 0),
    minutes: 70,
  },
  'CircuitsOpen ticket, that closes for probes': {
    ...one('weir_endpoint_circuits_open{endpoint="ops"}', (value) => `${value}+0x9 0 `.repeat(7), 1, 0),
    minutes: 70,
  },

  'PolicyNotFollowed ticket': one('weir_policy_confirmed_timestamp_seconds', (ago) => `${-ago}+30x70`, 61, 60),
  'PolicyChangeRefused ticket': any('weir_policy_changes_total{result="refused"}'),
  'PolicyShrank ticket': one('weir_policy_entities{kind="subject"}', (value) => turns(1_000, value), 899, 900),

  'KafkaUnderReplicated ticket': gauge('weir_topic_partitions{state="under_replicated"}', 1, 0),
  'KafkaBelowMinIsr page': gauge('weir_topic_partitions{state="under_min_isr"}', 1, 0),
  'ClickHouseTooManyParts ticket': gauge('weir_clickhouse_parts_max', 601, 600),
  'ClickHouseDiskFills ticket': gauge('weir_clickhouse_disk_free_ratio', 0.199, 0.2),
  'ClickHouseDiskFills page': {
    ...gauge('weir_clickhouse_disk_free_ratio', 0.049, 0.05),
    still: ['ClickHouseDiskFills ticket'],
  },
  'ClickHouseReplicaBehind ticket': gauge('weir_clickhouse_replica_delay_seconds', 61, 60),
}
