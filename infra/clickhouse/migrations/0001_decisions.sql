-- Who asked for what, when, and what was decided? One row per decision record, exactly as it stands in Kafka.
-- The rollups read this table's inserts, so it and each of them remember the tokens of recent inserts: the same block
-- sent again is dropped by all of them together.
CREATE TABLE IF NOT EXISTS weir.decisions
(
    v           UInt8,
    id          UUID,
    ts          DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    subject     String,
    key_id      String,
    plan        LowCardinality(String),
    route       LowCardinality(String),
    method      LowCardinality(String),
    cost        UInt64               COMMENT 'units per decision; the units of a row are cost * count',
    count       UInt64               COMMENT 'decisions in this row: 1 unless records were summed',
    outcome     LowCardinality(String),
    reason      LowCardinality(String),
    mode        LowCardinality(String),
    charged     LowCardinality(String),
    denied_by   LowCardinality(String),
    limits      Array(Tuple(name LowCardinality(String), size UInt64, used UInt64, remaining UInt64, reset_ms UInt64)),
    journal     UUID                 COMMENT 'process start that wrote the record',
    seq         UInt64               COMMENT 'contiguous per journal and partition',
    partition   UInt16,
    offset      UInt64 CODEC(Delta, ZSTD),
    received_at DateTime64(3, 'UTC') DEFAULT now64(3) CODEC(Delta, ZSTD),

    CONSTRAINT outcome_is_known CHECK outcome IN ('allow', 'deny'),
    CONSTRAINT count_is_positive CHECK count > 0
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(ts)
ORDER BY (subject, ts, id)
SETTINGS non_replicated_deduplication_window = 10000;
