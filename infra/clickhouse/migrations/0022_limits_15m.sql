-- How near does each subject come to each of its limits? Quarter hours by subject and limit, of what decisions met. Not all
-- corrections name limits, so units are those that were charged at first. Hours before this table was there stay empty until weir audit --repair.
CREATE TABLE IF NOT EXISTS weir.limits_15m
(
    ts             DateTime('UTC') COMMENT 'start of the bucket',
    subject        String,
    limit          LowCardinality(String),
    used           SimpleAggregateFunction(max, UInt64)  COMMENT 'most units in use after a decision; of a limit that counts by more than the subject, of its fullest count',
    size           SimpleAggregateFunction(max, UInt64)  COMMENT 'largest',
    share          SimpleAggregateFunction(max, Float32) COMMENT 'largest part of its size that was in use at once',
    count          SimpleAggregateFunction(sum, UInt64)  COMMENT 'decisions that met the limit',
    refused        SimpleAggregateFunction(sum, UInt64)  COMMENT 'decisions that the limit refused',
    shadow_refused SimpleAggregateFunction(sum, UInt64)  COMMENT 'decisions that it would have refused, were it not in shadow',
    cost           SimpleAggregateFunction(sum, UInt64)  COMMENT 'units of allowed decisions, without corrections'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(ts)
ORDER BY (subject, limit, ts)
TTL ts + INTERVAL 13 MONTH
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

-- Three arrays instead of their tuples: nothing else of a limit is copied for each of them.
CREATE MATERIALIZED VIEW IF NOT EXISTS weir.limits_15m_mv TO weir.limits_15m AS
SELECT
    toDateTime(toStartOfFifteenMinutes(d.ts), 'UTC') AS ts,
    subject,
    name AS limit,
    max(limit_used) AS used,
    max(limit_size) AS size,
    max(if(limit_size = 0, 0, toFloat32(limit_used / limit_size))) AS share,
    sum(d.count) AS count,
    sumIf(d.count, d.outcome = 'deny' AND d.denied_by = name) AS refused,
    sumIf(d.count, d.shadowed_by = name) AS shadow_refused,
    sumIf(d.cost * d.count, d.outcome = 'allow') AS cost
FROM weir.decisions AS d
ARRAY JOIN d.limits.name AS name, d.limits.used AS limit_used, d.limits.size AS limit_size
GROUP BY ts, subject, limit;
