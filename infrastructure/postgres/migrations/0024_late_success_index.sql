-- horolog: admits 8
-- horolog: dispensable
-- horolog: online
-- The successes of a job that came late (tries again, a replay, a catch-up), by when they came. Any
-- other success lies within minutes of its fire time, so the last one of all is found by both. Costs
-- nothing where all is quick, as executions_long does.
--
-- A partitioned table has no index concurrently: each month's is made by itself, then it is attached.
-- Those of months that begin meanwhile are there already. The names are those that Postgres gives, so
-- that a rebuilt set has the same.
-- step
CREATE INDEX IF NOT EXISTS executions_late_successes
    ON ONLY :schema.executions (job_id, finished_at)
    WHERE state = 'succeeded' AND finished_at - fire_time > interval '10 minutes';
-- step for each
SELECT format('CREATE INDEX CONCURRENTLY IF NOT EXISTS %I ON %I.%I (job_id, finished_at) '
              'WHERE state = ''succeeded'' AND finished_at - fire_time > interval ''10 minutes''',
              c.relname || '_job_id_finished_at_idx', :literal, c.relname)
FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = format('%I.executions', :literal)::regclass
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits n
                  JOIN pg_catalog.pg_index x ON x.indexrelid = n.inhrelid
                  WHERE n.inhparent = format('%I.executions_late_successes', :literal)::regclass
                    AND x.indrelid = c.oid)
ORDER BY c.relname;
-- step for each
SELECT format('ALTER INDEX %I.executions_late_successes ATTACH PARTITION %I.%I',
              :literal, :literal, c.relname || '_job_id_finished_at_idx')
FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = format('%I.executions', :literal)::regclass
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits n
                  JOIN pg_catalog.pg_index x ON x.indexrelid = n.inhrelid
                  WHERE n.inhparent = format('%I.executions_late_successes', :literal)::regclass
                    AND x.indrelid = c.oid)
ORDER BY c.relname;
