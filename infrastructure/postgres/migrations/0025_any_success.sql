-- horolog: admits 8
-- A job was called without success though it had one: the success that counted was that of the last fire
-- time that had one, or the latest end among the last 100 runs. A replay of an older run did not count;
-- and a pruning could take away the run that had succeeded last, and leave one that had succeeded before
-- it for a later fire time, from which the same silence was then told a second time.
--
-- Now any success counts, from when it came. It came within ten minutes of its fire time, or it is in
-- executions_late_successes: so after the success of the last fire time (executions_job, backwards)
-- only the minutes before that one ended are read, and one entry of that index.

-- What prunings have taken away: when the last success came among it, of each job that expected any
-- when it left. Beside the log as chain_pruned is, since the log no longer says it; kept by no rebuild.
CREATE TABLE :schema.successes_pruned (job_id uuid PRIMARY KEY, succeeded_at timestamptz NOT NULL);
-- Whoever reads the execution log reads this.
DO $do$
DECLARE
    reader regrole;
BEGIN
    FOR reader IN
        SELECT DISTINCT g.grantee::regrole
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g
        WHERE c.oid = format('%I.executions', :literal)::regclass AND g.privilege_type = 'SELECT'
          AND g.grantee <> c.relowner AND g.grantee <> 0
    LOOP
        EXECUTE format('GRANT SELECT ON %I.successes_pruned TO %s', :literal, reader);
    END LOOP;
END $do$;

-- As migrations/0019, but for that. Where nothing is known of any success, nothing is said of the time
-- before the oldest month: what was pruned may have been one.
CREATE OR REPLACE FUNCTION :schema.deadlines_missed(after timestamptz, most integer)
RETURNS TABLE (deadline text, job_id uuid, name text, owner text, due timestamptz,
               occurrence_id uuid, fire_time timestamptz)
    LANGUAGE sql STABLE SET enable_seqscan = off SET enable_hashjoin = off
    SET enable_mergejoin = off AS $$
    WITH watched AS MATERIALIZED (
        SELECT j.id, j.name, j.owner, j.status, j.registered_at,
               make_interval(secs => (j.definition ->> 'start_within')::float8) AS start_within,
               make_interval(secs => (j.definition ->> 'finish_within')::float8) AS finish_within,
               make_interval(secs => (j.definition ->> 'expect_success_by')::float8) AS success_by
        FROM :schema.jobs j
        WHERE j.definition ->> 'start_within' IS NOT NULL
           OR j.definition ->> 'finish_within' IS NOT NULL
           OR j.definition ->> 'expect_success_by' IS NOT NULL
    ), unfinished AS (
        SELECT w.*, r.id AS run, r.fire_time, r.attempt = 0 OR (r.attempt = 1 AND r.state = 'claimed')
                                              AS waits
        FROM watched w JOIN :schema.next_runs r ON r.job_id = w.id AND r.kind <> 'job'
                                                   AND r.kind <> 'backfill'
        UNION ALL
        SELECT w.*, NULL, r.fire_time, true
        FROM watched w JOIN :schema.next_runs r ON r.id = w.id
    ), kept AS MATERIALIZED (
        SELECT to_date(min(right(c.relname, 7)), 'YYYY_MM')::timestamp AT TIME ZONE 'UTC' AS since
        FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = format('%I.executions', :literal)::regclass
          AND c.relname ~ '^executions_[0-9]{4}_[0-9]{2}$'
    ), misses AS (
        SELECT 'start' AS deadline, u.id, u.name, u.owner, u.fire_time + u.start_within AS due,
               u.run, u.fire_time
        FROM unfinished u WHERE u.waits
        UNION ALL
        SELECT 'finish', u.id, u.name, u.owner, u.fire_time + u.finish_within, u.run, u.fire_time
        FROM unfinished u
        UNION ALL
        SELECT 'finish', w.id, w.name, w.owner, x.fire_time + w.finish_within, x.id, x.fire_time
        FROM watched w CROSS JOIN LATERAL (
            SELECT e.id, e.fire_time, e.finished_at, e.kind, e.state FROM :schema.executions e
            WHERE e.job_id = w.id ORDER BY e.id DESC LIMIT 20) x
        WHERE w.finish_within IS NOT NULL AND x.kind IN ('schedule', 'trigger')
          AND x.state <> 'discarded'
          AND x.finished_at > x.fire_time + w.finish_within
          AND x.finished_at > clock_timestamp() - interval '1 minute'
        UNION ALL
        SELECT 'success', w.id, w.name, w.owner,
               greatest(w.registered_at,
                        coalesce(greatest(latest.finished_at, beside.finished_at, late.finished_at,
                                          gone.succeeded_at), kept.since)) + w.success_by,
               NULL, NULL
        FROM watched w
        LEFT JOIN LATERAL (
            SELECT x.id, x.finished_at FROM :schema.executions x
            WHERE x.job_id = w.id AND x.state = 'succeeded'
            ORDER BY x.id DESC LIMIT 1) latest ON true
        LEFT JOIN LATERAL (
            SELECT max(x.finished_at) AS finished_at FROM :schema.executions x
            WHERE x.job_id = w.id AND x.state = 'succeeded' AND x.id < latest.id
              AND x.id >= :schema.time_floor(latest.finished_at - interval '10 minutes')) beside ON true
        LEFT JOIN LATERAL (
            SELECT x.finished_at FROM :schema.executions x
            WHERE x.job_id = w.id AND x.state = 'succeeded'
              AND x.finished_at - x.fire_time > interval '10 minutes'
            ORDER BY x.finished_at DESC LIMIT 1) late ON true
        LEFT JOIN :schema.successes_pruned gone ON gone.job_id = w.id
        CROSS JOIN kept
        WHERE w.success_by IS NOT NULL AND w.status = 'active'
    )
    SELECT m.deadline, m.id, m.name, m.owner, m.due, m.run, m.fire_time FROM misses m
    WHERE m.due > after AND m.due <= clock_timestamp()
    ORDER BY m.due, m.id, m.deadline LIMIT most
$$;
