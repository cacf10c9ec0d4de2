-- What became of an allowed request? One row per answer of an upstream, under the id of its decision. Kept for three months.
CREATE TABLE IF NOT EXISTS weir.outcomes
(
    v           UInt8,
    id          UUID COMMENT 'of the decision',
    ts          DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    subject     String,
    route       LowCardinality(String),
    method      LowCardinality(String),
    status      UInt16  COMMENT 'as the client got it; 499: it was gone before',
    duration_ms Float32 COMMENT 'from the head of the request to the end of the answer',
    bytes_in    UInt64,
    bytes_out   UInt64,
    upstream    LowCardinality(String),
    error       LowCardinality(String) COMMENT 'empty: the answer went out whole',
    journal     UUID   COMMENT 'process start that wrote the record',
    seq         UInt64 COMMENT 'contiguous per journal and partition of this topic',
    topic_id    UUID   COMMENT 'which life of the topic partition and offset belong to; all zeros: unknown',
    partition   UInt16,
    offset      UInt64 CODEC(Delta, ZSTD),
    received_at DateTime64(3, 'UTC') DEFAULT now64(3) CODEC(Delta, ZSTD),

    CONSTRAINT status_is_known CHECK status BETWEEN 100 AND 999
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(ts)
ORDER BY (subject, ts, id)
TTL toDateTime(ts) + INTERVAL 90 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;
