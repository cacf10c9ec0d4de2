-- Which alerts were raised, for whom, about what? One row per alert, however often Kafka hands it over. An alert that Redis has
-- forgotten is looked up here before it is published, so this is kept longer than any period lasts.
CREATE TABLE IF NOT EXISTS weir.alerts
(
    id           UUID   COMMENT 'ce_id: follows from subject, limit, size, threshold and period',
    type         LowCardinality(String) COMMENT 'ce_type: weir.quota.reached and others',
    subject      String,
    time         DateTime64(3, 'UTC') COMMENT 'when it was raised',
    state        LowCardinality(String) COMMENT 'raised: published on weir.alerts.v1 | late: its period was over, and nobody was told',
    limit        LowCardinality(String) COMMENT 'empty where it is not about a limit',
    size         UInt64,
    used         UInt64,
    percent      Float64,
    period_start DateTime('UTC'),
    period_end   DateTime('UTC'),
    decision_id  UUID   COMMENT 'the decision that crossed the threshold; all zeros if there is none',
    data         String COMMENT 'all that the alert says, as JSON',
    recorded_at  DateTime64(3, 'UTC') DEFAULT now64(3),

    INDEX by_subject subject TYPE bloom_filter GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(period_start)
ORDER BY id
TTL toDateTime(period_start) + INTERVAL 13 MONTH
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;
