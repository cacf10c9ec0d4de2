-- Which policy was a decision made under? One row per record of the policy topic that says what limits a request: the console inserts
-- what it follows, and several consoles, or one that starts again, insert the same rows. A policy as of an offset is the last row of
-- each name up to it. Credentials, endpoints and contacts are never in it.
CREATE TABLE IF NOT EXISTS weir.policy_history
(
    topic    LowCardinality(String),
    topic_id UUID                   COMMENT 'Kafka''s id of the topic: offsets of one that was made again begin again',
    offset   UInt64 CODEC(Delta, ZSTD),
    change   UUID                   COMMENT 'id of the change that the record is part of, as in GET /v1/changes',
    at       DateTime64(3, 'UTC')   COMMENT 'when the change was made, by the clock of the console' CODEC(Delta, ZSTD),
    kind     LowCardinality(String) COMMENT 'limit | plan | route | price | subject | change (ends a change) | overtaken (ends one that no process took over)',
    name     String,
    body     String                 COMMENT 'JSON, as weir.yaml has it; empty: deleted. Of a change who made it, and the first lines of its summary' CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree
ORDER BY (topic, topic_id, kind, name, offset)
SETTINGS non_replicated_deduplication_window = 10000;
