-- How far has each journal been inserted, as of any offset? One row per block and journal, so that a partition's state is found
-- without reading the raw rows. Only smallest and largest values matter: a row that stands here twice does no harm.
-- After a week a journal's blocks in a partition become one row.
CREATE TABLE IF NOT EXISTS weir.numbers
(
    topic       LowCardinality(String),
    topic_id    UUID   COMMENT 'as in weir.decisions',
    partition   UInt16,
    journal     UUID,
    from_offset UInt64,
    to_offset   UInt64 COMMENT 'of the last row',
    from_seq    UInt64,
    to_seq      UInt64 COMMENT 'of the last row',
    received_at DateTime('UTC') DEFAULT now()
)
ENGINE = MergeTree
ORDER BY (topic, topic_id, partition, journal, from_offset)
TTL received_at + INTERVAL 13 MONTH,
    received_at + INTERVAL 7 DAY GROUP BY topic, topic_id, partition, journal
        SET from_offset = min(from_offset), to_offset = max(to_offset), from_seq = min(from_seq), to_seq = max(to_seq), received_at = max(received_at)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS weir.decisions_numbers_mv TO weir.numbers AS
SELECT
    'weir.decisions.v1' AS topic,
    topic_id,
    partition,
    journal,
    min(d.offset) AS from_offset,
    max(d.offset) AS to_offset,
    min(d.seq) AS from_seq,
    max(d.seq) AS to_seq
FROM weir.decisions AS d
GROUP BY topic_id, partition, journal;

CREATE MATERIALIZED VIEW IF NOT EXISTS weir.outcomes_numbers_mv TO weir.numbers AS
SELECT
    'weir.outcomes.v1' AS topic,
    topic_id,
    partition,
    journal,
    min(o.offset) AS from_offset,
    max(o.offset) AS to_offset,
    min(o.seq) AS from_seq,
    max(o.seq) AS to_seq
FROM weir.outcomes AS o
GROUP BY topic_id, partition, journal;

-- What was inserted before this table was there.
INSERT INTO weir.numbers (topic, topic_id, partition, journal, from_offset, to_offset, from_seq, to_seq)
SELECT 'weir.decisions.v1', topic_id, partition, journal, min(d.offset), max(d.offset), min(d.seq), max(d.seq)
FROM weir.decisions AS d
GROUP BY topic_id, partition, journal;
