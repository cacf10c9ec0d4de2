-- Which threshold alerts are not over yet? An alert and the one that resolves it have the same incident. Rows of an older process have
-- none: their alerts are never resolved.
ALTER TABLE weir.alerts
    ADD COLUMN IF NOT EXISTS incident UUID
        COMMENT 'of weir.quota.reached its id, of weir.quota.resolved the id of the alert that it resolves; all zeros of others' AFTER decision_id
    SETTINGS alter_sync = 0;
