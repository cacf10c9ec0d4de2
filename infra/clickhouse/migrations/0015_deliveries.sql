-- What became of an alert on its way to an endpoint? One row when it was queued or asked for again, and one per attempt.
CREATE TABLE IF NOT EXISTS weir.deliveries
(
    alert_id    UUID COMMENT 'weir.alerts.id',
    alert_type  LowCardinality(String),
    subject     String,
    endpoint    LowCardinality(String) COMMENT 'its name in the policy',
    attempt     UInt16 COMMENT 'from 1, after a request from 1 anew; 0: nothing sent yet',
    at          DateTime64(3, 'UTC') COMMENT 'when it began',
    outcome     LowCardinality(String) COMMENT 'queued | requested | delivered | failed (tried again) | given_up (a dead letter) | dropped (not sent)',
    status      UInt16 COMMENT 'of the answer; 0 for none',
    ms          UInt32,
    error       String COMMENT 'why it failed; empty where it did not',
    next_try    Nullable(DateTime64(3, 'UTC')),
    answer      String COMMENT 'the beginning of the body',
    recorded_at DateTime64(3, 'UTC') DEFAULT now64(3),

    INDEX by_subject subject TYPE bloom_filter GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (alert_id, endpoint, at, attempt)
TTL toDateTime(at) + INTERVAL 13 MONTH
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;
