-- How long is what kept? Decisions for 13 months, minutes for 35 days, quarter hours for good. By whole parts of a month, which costs
-- nothing; so up to a month longer. Each view's target goes by its own time: raw rows that go take nothing out of the rollups.
ALTER TABLE weir.decisions MODIFY SETTING ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1;
ALTER TABLE weir.decisions MODIFY TTL toDateTime(ts) + INTERVAL 13 MONTH;

ALTER TABLE weir.usage_1m MODIFY SETTING ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1;
ALTER TABLE weir.usage_1m MODIFY TTL ts + INTERVAL 35 DAY;
