-- By what did each limit count, under which policy was it decided, and how long was the caller told to wait? Of a limit, `by` has what it
-- counted by beyond the subject. A record without these fields, of an older process, has the defaults. The server widens limits in the
-- parts that it has one after the other; until it comes to a part, a read widens them, so nothing waits for it.
ALTER TABLE weir.decisions
    MODIFY COLUMN limits Array(Tuple(name LowCardinality(String), size UInt64, used UInt64, remaining UInt64, reset_ms UInt64,
        by Map(LowCardinality(String), String))) CODEC(ZSTD(3)),
    ADD COLUMN IF NOT EXISTS policy Int64 DEFAULT -1
        COMMENT 'offset in weir.policy.v1 of the last change in force; -1: unknown' CODEC(Delta, ZSTD(1)) AFTER limits,
    ADD COLUMN IF NOT EXISTS retry_ms Int64
        COMMENT 'milliseconds that a refused caller was told to wait; -1: waiting does not help' CODEC(ZSTD(1)) AFTER policy,
    ADD COLUMN IF NOT EXISTS ip String
        COMMENT 'address as WEIR_RECORD_ADDRESS says; empty where no limit of the decision counts by address' CODEC(ZSTD(3)) AFTER retry_ms
    SETTINGS alter_sync = 0;
