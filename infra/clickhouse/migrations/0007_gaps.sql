-- What is missing, and since when is it known? One row per gap, however often it is noticed: records that their journal could
-- not take or Kafka refused (they left a record in their place), numbers that never came, offsets that Kafka deleted unread.
CREATE TABLE IF NOT EXISTS weir.gaps
(
    cause       LowCardinality(String) COMMENT 'journal_full | refused | lost | expired',
    topic       LowCardinality(String),
    topic_id    UUID   COMMENT 'as in weir.decisions',
    partition   UInt16,
    journal     UUID   COMMENT 'all zeros where only offsets are known',
    from_seq    UInt64 COMMENT 'first missing number, or that of the record in its place',
    to_seq      UInt64 COMMENT 'last missing number',
    from_offset UInt64 COMMENT 'first missing offset; 0 where numbers are missing',
    to_offset   UInt64 COMMENT 'last missing offset',
    count       UInt64 COMMENT 'decisions that it stands for, as far as known; else records',
    from_ts     DateTime64(3, 'UTC') COMMENT 'first of them, as far as known',
    to_ts       DateTime64(3, 'UTC') COMMENT 'last of them, as far as known',
    detail      String,
    noticed_at  DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY (topic, partition, journal, cause, topic_id, from_seq, from_offset)
SETTINGS non_replicated_deduplication_window = 10000;
