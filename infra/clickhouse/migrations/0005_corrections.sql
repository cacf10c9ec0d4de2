-- What did a decision cost in the end, when that was known only afterwards or was given back? A correction is a row of its own
-- that names the decision and by how many units its cost changes. It counts no decision and stands in the bucket of the one it
-- corrects, so a rollup's cost is what was used, corrections included, and may be less than what was charged at first.
ALTER TABLE weir.decisions
    ADD COLUMN IF NOT EXISTS corrects UUID COMMENT 'the decision that this row corrects; all zeros: it is a decision itself',
    ADD COLUMN IF NOT EXISTS adjustment Int64 COMMENT 'units by which the cost of the corrected decision changes',
    ADD COLUMN IF NOT EXISTS topic_id UUID COMMENT 'which life of the topic partition and offset belong to; all zeros: unknown';

-- The new rule comes before the old one goes: at no moment is there none.
ALTER TABLE weir.decisions
    ADD CONSTRAINT IF NOT EXISTS only_corrections_count_nothing
    CHECK if(corrects = toUUID('00000000-0000-0000-0000-000000000000'), count > 0 AND adjustment = 0, count = 0);

ALTER TABLE weir.decisions DROP CONSTRAINT IF EXISTS count_is_positive;

-- A column that the rollups were not made to sum cannot be added to them: they keep any one of its values. So the sum that
-- they have takes the corrections in, and becomes a number that may fall.
ALTER TABLE weir.usage_1m MODIFY COLUMN cost Int64 COMMENT 'units, corrections included; those of outcome allow were consumed';
ALTER TABLE weir.usage_15m MODIFY COLUMN cost Int64 COMMENT 'units, corrections included; those of outcome allow were consumed';
ALTER TABLE weir.usage_total_15m MODIFY COLUMN cost Int64 COMMENT 'units, corrections included; those of outcome allow were consumed';

-- A view whose query is changed forgets which blocks it has seen. Metering of the version before has to be stopped by now: it might
-- send one of them again. Its successor names its blocks otherwise and would not.
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
    sum(d.count) AS count,
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
    sum(d.count) AS count,
    toInt64(sum(d.cost * d.count)) + sum(d.adjustment) AS cost
FROM weir.decisions AS d
GROUP BY ALL;
