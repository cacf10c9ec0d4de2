-- Until when is usage complete? The last mark of every journal in every partition. Only largest and smallest values are kept,
-- so a mark that comes twice, late or out of order changes nothing.
CREATE TABLE IF NOT EXISTS weir.marks
(
    topic      LowCardinality(String),
    journal    UUID,
    partition  UInt16,
    mark       SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'all of this journal before it stands in this partition, and was inserted',
    first_mark SimpleAggregateFunction(min, DateTime64(3, 'UTC')) DEFAULT mark,
    seq        SimpleAggregateFunction(max, UInt64) COMMENT 'numbered up to, not including, this',
    end        SimpleAggregateFunction(max, Bool)   COMMENT 'nothing of this journal comes after it',
    noticed_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) DEFAULT now64(3)
)
ENGINE = AggregatingMergeTree
ORDER BY (topic, journal, partition)
TTL toDateTime(noticed_at) + INTERVAL 35 DAY
SETTINGS non_replicated_deduplication_window = 10000;
