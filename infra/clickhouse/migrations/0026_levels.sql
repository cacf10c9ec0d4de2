-- Below whom was a subject when it was decided, and which of its ancestors did a limit count? Of a limit, `at` has the ancestor; empty for
-- the subject itself. A record without these fields, of an older process, has the defaults.
ALTER TABLE weir.decisions
    MODIFY COLUMN limits Array(Tuple(name LowCardinality(String), size UInt64, used UInt64, remaining UInt64, reset_ms UInt64,
        by Map(LowCardinality(String), String), at LowCardinality(String))) CODEC(ZSTD(3)),
    ADD COLUMN IF NOT EXISTS parents Array(LowCardinality(String))
        COMMENT 'the subject''s ancestors, the nearest first' CODEC(ZSTD(1)) AFTER basis
    SETTINGS alter_sync = 0;

-- Who was moved has rows of before and of after: a tree's sums are of those who were in it.
ALTER TABLE weir.usage_1m
    ADD COLUMN IF NOT EXISTS parents Array(String) COMMENT 'the subject''s ancestors, the nearest first' AFTER denied_by,
    MODIFY ORDER BY (subject, key_id, ts, plan, route, method, outcome, denied_by, parents);

ALTER TABLE weir.usage_15m
    ADD COLUMN IF NOT EXISTS parents Array(String) COMMENT 'the subject''s ancestors, the nearest first' AFTER denied_by,
    MODIFY ORDER BY (subject, key_id, ts, plan, route, method, outcome, denied_by, parents);

ALTER TABLE weir.units_15m
    ADD COLUMN IF NOT EXISTS parents Array(String) COMMENT 'the subject''s ancestors, the nearest first' AFTER basis,
    MODIFY ORDER BY (subject, ts, unit, basis, key_id, plan, route, meter, dims, parents);

ALTER TABLE weir.usage_1m_mv MODIFY QUERY
SELECT
    toDateTime(toStartOfMinute(d.ts), 'UTC') AS ts,
    subject,
    key_id,
    plan,
    route,
    method,
    outcome,
    denied_by,
    parents,
    sum(d.count) AS count,
    toInt64(sum(d.cost * d.count)) + sum(d.adjustment) AS cost
FROM weir.decisions AS d
GROUP BY ALL;

ALTER TABLE weir.usage_15m_mv MODIFY QUERY
SELECT
    toDateTime(toStartOfFifteenMinutes(d.ts), 'UTC') AS ts,
    subject,
    key_id,
    plan,
    route,
    method,
    outcome,
    denied_by,
    parents,
    sum(d.count) AS count,
    toInt64(sum(d.cost * d.count)) + sum(d.adjustment) AS cost
FROM weir.decisions AS d
GROUP BY ALL;

ALTER TABLE weir.units_15m_mv MODIFY QUERY
SELECT
    toDateTime(toStartOfFifteenMinutes(d.ts), 'UTC') AS ts,
    subject,
    key_id,
    plan,
    route,
    meter,
    arrayMap((k, v) -> concat(k, '=', v), arraySort(mapKeys(d.dims)), arraySort((v, k) -> k, mapValues(d.dims), mapKeys(d.dims))) AS dims,
    unit,
    basis,
    parents,
    sum(q) AS quantity,
    count() AS count
FROM weir.decisions AS d
ARRAY JOIN mapKeys(d.units) AS unit, mapValues(d.units) AS q
WHERE d.outcome = 'allow'
GROUP BY ALL;

-- A limit is its subject's that it counts.
ALTER TABLE weir.limits_15m_mv MODIFY QUERY
SELECT
    toDateTime(toStartOfFifteenMinutes(d.ts), 'UTC') AS ts,
    if(limit_at = '', d.subject, limit_at) AS subject,
    name AS limit,
    max(limit_used) AS used,
    max(limit_size) AS size,
    max(if(limit_size = 0, 0, toFloat32(limit_used / limit_size))) AS share,
    sum(d.count) AS count,
    sumIf(d.count, d.outcome = 'deny' AND d.denied_by = name) AS refused,
    sumIf(d.count, d.shadowed_by = name) AS shadow_refused,
    sumIf(d.cost * d.count, d.outcome = 'allow') AS cost
FROM weir.decisions AS d
ARRAY JOIN d.limits.name AS name, d.limits.used AS limit_used, d.limits.size AS limit_size, d.limits.at AS limit_at
GROUP BY ts, subject, limit;
