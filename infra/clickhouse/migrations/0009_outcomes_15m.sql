-- How did upstreams answer, and how fast? Quarter hours by subject, route and method; the states give quantiles over any of them.
CREATE TABLE IF NOT EXISTS weir.outcomes_15m
(
    ts         DateTime('UTC') COMMENT 'start of the bucket',
    subject    String,
    route      LowCardinality(String),
    method     LowCardinality(String),
    count      SimpleAggregateFunction(sum, UInt64) COMMENT 'answers',
    status_1xx SimpleAggregateFunction(sum, UInt64),
    status_2xx SimpleAggregateFunction(sum, UInt64),
    status_3xx SimpleAggregateFunction(sum, UInt64),
    status_4xx SimpleAggregateFunction(sum, UInt64),
    status_5xx SimpleAggregateFunction(sum, UInt64) COMMENT 'those beyond 599 too',
    broken     SimpleAggregateFunction(sum, UInt64) COMMENT 'answers that did not go out whole',
    bytes_in   SimpleAggregateFunction(sum, UInt64),
    bytes_out  SimpleAggregateFunction(sum, UInt64),
    duration_ms AggregateFunction(quantilesTDigest(0.5, 0.9, 0.99), Float32)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(ts)
ORDER BY (subject, ts, route, method)
TTL ts + INTERVAL 13 MONTH
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS weir.outcomes_15m_mv TO weir.outcomes_15m AS
SELECT
    toDateTime(toStartOfFifteenMinutes(o.ts), 'UTC') AS ts,
    subject,
    route,
    method,
    count() AS count,
    countIf(o.status < 200) AS status_1xx,
    countIf(o.status BETWEEN 200 AND 299) AS status_2xx,
    countIf(o.status BETWEEN 300 AND 399) AS status_3xx,
    countIf(o.status BETWEEN 400 AND 499) AS status_4xx,
    countIf(o.status >= 500) AS status_5xx,
    countIf(o.error != '') AS broken,
    sum(o.bytes_in) AS bytes_in,
    sum(o.bytes_out) AS bytes_out,
    quantilesTDigestState(0.5, 0.9, 0.99)(o.duration_ms) AS duration_ms
FROM weir.outcomes AS o
GROUP BY ts, subject, route, method;
