-- What did a decision use in other units than its cost, and what did it only hold until that was known? The correction of a decision
-- that held something repeats what that was, so that what is held and was never settled is a difference of two sums.
ALTER TABLE weir.decisions
    ADD COLUMN IF NOT EXISTS held Map(LowCardinality(String), UInt64)
        COMMENT 'units held until the decision is settled; a correction repeats those of its decision' CODEC(ZSTD(1)) AFTER ip,
    ADD COLUMN IF NOT EXISTS units Map(LowCardinality(String), UInt64)
        COMMENT 'units besides the cost: used, by an admission or a correction; asked for, by a denial' CODEC(ZSTD(1)) AFTER held,
    ADD COLUMN IF NOT EXISTS basis LowCardinality(String)
        COMMENT 'how units are known; empty for none' CODEC(ZSTD(1)) AFTER units
    SETTINGS alter_sync = 0;

-- Counts may be corrected later, as costs are: both may fall.
ALTER TABLE weir.usage_1m MODIFY COLUMN count Int64 COMMENT 'decisions';
ALTER TABLE weir.usage_15m MODIFY COLUMN count Int64 COMMENT 'decisions';
ALTER TABLE weir.usage_total_15m MODIFY COLUMN count Int64 COMMENT 'decisions';
