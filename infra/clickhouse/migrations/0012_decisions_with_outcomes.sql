-- What was decided, and what came of it? A decision without an outcome stands here too: it was denied, its request was not
-- passed on by Weir, or its answer is still on the way. status is 0 then. Corrections are left out.
CREATE VIEW IF NOT EXISTS weir.decisions_with_outcomes AS
SELECT
    d.id AS id,
    d.ts AS ts,
    d.subject AS subject,
    d.key_id AS key_id,
    d.plan AS plan,
    d.route AS route,
    d.method AS method,
    d.cost AS cost,
    d.count AS count,
    d.outcome AS outcome,
    d.reason AS reason,
    d.denied_by AS denied_by,
    o.status AS status,
    o.duration_ms AS duration_ms,
    o.bytes_in AS bytes_in,
    o.bytes_out AS bytes_out,
    o.upstream AS upstream,
    o.error AS error
FROM weir.decisions AS d
LEFT ANY JOIN weir.outcomes AS o ON o.subject = d.subject AND o.id = d.id
WHERE d.count > 0;
