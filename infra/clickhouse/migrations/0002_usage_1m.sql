-- How much did a subject use, minute by minute? Straight from the raw rows.
CREATE TABLE IF NOT EXISTS weir.usage_1m
(
    ts        DateTime('UTC') COMMENT 'start of the bucket',
    subject   String,
    key_id    String,
    plan      LowCardinality(String),
    route     LowCardinality(String),
    method    LowCardinality(String),
    outcome   LowCardinality(String),
    denied_by LowCardinality(String),
    count     UInt64 COMMENT 'decisions',
    cost      UInt64 COMMENT 'units asked for; those of outcome allow were consumed'
)
ENGINE = SummingMergeTree((count, cost))
PARTITION BY toYYYYMM(ts)
ORDER BY (subject, key_id, ts, plan, route, method, outcome, denied_by)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS weir.usage_1m_mv TO weir.usage_1m AS
SELECT
    toDateTime(toStartOfMinute(d.ts), 'UTC') AS ts,
    subject,
    key_id,
    plan,
    route,
    method,
    outcome,
    denied_by,
    sum(d.count) AS count,
    sum(d.cost * d.count) AS cost
FROM weir.decisions AS d
GROUP BY ALL;
