-- Which limit in shadow would have refused what was allowed? denied_by names it too, unless another limit degraded the request, and then
-- only this column does. Rows without the field, of before it and of older processes, have it from denied_by: no row is written again.
ALTER TABLE weir.decisions
    ADD COLUMN IF NOT EXISTS shadowed_by LowCardinality(String) DEFAULT if(mode = 'shadow', denied_by, '')
    COMMENT 'limit in shadow that would have refused; denied_by may name it as well' CODEC(ZSTD(1)) AFTER denied_by;
