-- How many decisions were not made of those that an application took ahead? Their record counts all of them, so its correction takes back
-- decisions as well as units, in the bucket of that record. The count of a rollup may fall by that, as its cost may.
ALTER TABLE weir.decisions
    ADD COLUMN IF NOT EXISTS count_adjustment Int64 COMMENT 'of a correction: decisions that the corrected record counts too many, below zero'
        CODEC(ZSTD(1)) AFTER adjustment
    SETTINGS alter_sync = 0;

ALTER TABLE weir.decisions
    ADD CONSTRAINT IF NOT EXISTS only_corrections_take_back
    CHECK if(corrects = toUUID('00000000-0000-0000-0000-000000000000'), count_adjustment = 0, count_adjustment <= 0);

ALTER TABLE weir.usage_1m MODIFY COLUMN count Int64 COMMENT 'decisions, corrections included';
ALTER TABLE weir.usage_15m MODIFY COLUMN count Int64 COMMENT 'decisions, corrections included';
ALTER TABLE weir.usage_total_15m MODIFY COLUMN count Int64 COMMENT 'decisions, corrections included';

-- A view whose query is changed forgets which blocks it has seen: metering of the version before has to be stopped by now.
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
    toInt64(sum(d.count)) + sum(d.count_adjustment) AS count,
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
    toInt64(sum(d.count)) + sum(d.count_adjustment) AS count,
    toInt64(sum(d.cost * d.count)) + sum(d.adjustment) AS cost
FROM weir.decisions AS d
GROUP BY ALL;

ALTER TABLE weir.usage_total_15m_mv MODIFY QUERY
SELECT
    toDateTime(toStartOfFifteenMinutes(d.ts), 'UTC') AS ts,
    plan,
    route,
    method,
    outcome,
    denied_by,
    toInt64(sum(d.count)) + sum(d.count_adjustment) AS count,
    toInt64(sum(d.cost * d.count)) + sum(d.adjustment) AS cost
FROM weir.decisions AS d
GROUP BY ALL;
