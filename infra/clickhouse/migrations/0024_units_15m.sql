-- By which meter, and of which model or team, was a decision's usage? Units may be below zero: the correction of a decision that used
-- nothing after all takes back what was counted, so that the units of all records add up to what was used.
ALTER TABLE weir.decisions
    ADD COLUMN IF NOT EXISTS meter LowCardinality(String) COMMENT 'the meter that measured it; empty for none' CODEC(ZSTD(1)) AFTER ip,
    ADD COLUMN IF NOT EXISTS dims Map(LowCardinality(String), String)
        COMMENT 'labels of its usage by the names of dimensions' CODEC(ZSTD(1)) AFTER meter,
    MODIFY COLUMN units Map(LowCardinality(String), Int64)
        COMMENT 'units besides the cost: used, by an admission or a correction; asked for, by a denial' CODEC(ZSTD(1))
    SETTINGS alter_sync = 0;

-- How much of each unit was used? Quarter hours, for good. What is only held is counted once it is settled. Hours before this table
-- was there stay empty until weir audit --repair.
CREATE TABLE IF NOT EXISTS weir.units_15m
(
    ts       DateTime('UTC') COMMENT 'start of the bucket',
    subject  String,
    key_id   String,
    plan     LowCardinality(String),
    route    LowCardinality(String),
    meter    LowCardinality(String),
    dims     Array(String) COMMENT 'name=value of each label, sorted by name',
    unit     LowCardinality(String),
    basis    LowCardinality(String) COMMENT 'how the quantity is known',
    quantity Int64 COMMENT 'used, corrections included',
    count    Int64 COMMENT 'records: admissions and corrections'
)
ENGINE = SummingMergeTree((quantity, count))
PARTITION BY toYYYYMM(ts)
ORDER BY (subject, ts, unit, basis, key_id, plan, route, meter, dims)
SETTINGS non_replicated_deduplication_window = 10000;

-- A denial's units were asked for and not used. A correction is an admission of the bucket of the decision that it corrects.
CREATE MATERIALIZED VIEW IF NOT EXISTS weir.units_15m_mv TO weir.units_15m AS
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
    sum(q) AS quantity,
    count() AS count
FROM weir.decisions AS d
ARRAY JOIN mapKeys(d.units) AS unit, mapValues(d.units) AS q
WHERE d.outcome = 'allow'
GROUP BY ALL;
