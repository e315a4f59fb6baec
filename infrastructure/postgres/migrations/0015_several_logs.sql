-- horolog: admits 8
-- A namespace may have several logs, each in a database of its own: which one this is, of how many,
-- and of which set. Fixed when the namespace is created, as the number of partitions is.
ALTER TABLE :schema.namespace
    ADD COLUMN log smallint NOT NULL DEFAULT 0,
    ADD COLUMN logs smallint NOT NULL DEFAULT 1,
    ADD COLUMN set_id uuid NOT NULL DEFAULT gen_random_uuid(),
    ADD CONSTRAINT namespace_log_of_logs CHECK (log BETWEEN 0 AND logs - 1);
