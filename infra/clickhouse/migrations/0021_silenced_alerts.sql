-- Which alerts fell under a silence, and under which one? Rows of an older process have none here: their deliveries name it.
ALTER TABLE weir.alerts
    ADD COLUMN IF NOT EXISTS silence LowCardinality(String)
        COMMENT 'name of the silence that held when it was raised; empty: none' AFTER state
    SETTINGS alter_sync = 0;
