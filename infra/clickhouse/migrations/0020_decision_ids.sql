-- Where is the decision of this id, whoever asked? Granules without it are left out. Parts that are there have no filter yet: a read of
-- them takes longer until they are merged, or until ALTER TABLE weir.decisions MATERIALIZE INDEX ids.
ALTER TABLE weir.decisions ADD INDEX IF NOT EXISTS ids id TYPE bloom_filter(0.01) GRANULARITY 1 SETTINGS alter_sync = 0;
