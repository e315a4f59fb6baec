-- horolog: admits 8
-- horolog: dispensable
-- horolog: online
-- The successes of a job that came late (tries again, a replay, a catch-up), by when they came. Any
-- other success lies within minutes of its fire time, so the last one of all is found by both. Costs
-- nothing where all is quick, as executions_long does.
-- step
CREATE INDEX IF NOT EXISTS executions_late_successes
    ON ONLY :schema.executions (job_id, finished_at)
    WHERE state = 'succeeded' AND finished_at - fire_time > interval '10 minutes';
-- step
-- A month at a time, so that writers wait for the one that they write to alone. Those that begin
-- meanwhile have it already.
DO $do$
DECLARE
    month record;
    own text;
BEGIN
    FOR month IN
        SELECT c.oid, c.relname FROM pg_catalog.pg_inherits i
        JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = format('%I.executions', :literal)::regclass
    LOOP
        CONTINUE WHEN EXISTS (
            SELECT FROM pg_catalog.pg_inherits i
            JOIN pg_catalog.pg_index x ON x.indexrelid = i.inhrelid
            WHERE i.inhparent = format('%I.executions_late_successes', :literal)::regclass
              AND x.indrelid = month.oid);
        own := month.relname || '_late_successes';
        EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON %I.%I (job_id, finished_at) '
                       'WHERE state = ''succeeded'' AND finished_at - fire_time > interval ''10 minutes''',
                       own, :literal, month.relname);
        EXECUTE format('ALTER INDEX %I.executions_late_successes ATTACH PARTITION %I.%I',
                       :literal, :literal, own);
        COMMIT;
    END LOOP;
END $do$;
