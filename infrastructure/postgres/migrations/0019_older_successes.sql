-- horolog: admits 8
-- horolog: dispensable
-- A job's last success was looked for among its last 100 runs: after more failures than that, it was
-- called without success since its registration, a second time. As migrations/0018, but the success
-- may lie as far back as the execution log reaches: the last run, by its fire time, that succeeded.
-- Among the last 100 the latest end counts, since runs may end in another order. executions_job,
-- backwards up to the first success.
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
                        coalesce(latest.finished_at, last_success.finished_at, kept.since))
                   + w.success_by,
               NULL, NULL
        FROM watched w CROSS JOIN LATERAL (
            SELECT max(e.finished_at) AS finished_at FROM (
                SELECT x.state, x.finished_at FROM :schema.executions x
                WHERE x.job_id = w.id ORDER BY x.id DESC LIMIT 100) e
            WHERE e.state = 'succeeded') latest
        LEFT JOIN LATERAL (
            SELECT x.finished_at FROM :schema.executions x
            WHERE latest.finished_at IS NULL AND x.job_id = w.id AND x.state = 'succeeded'
            ORDER BY x.id DESC LIMIT 1) last_success ON true
        CROSS JOIN kept
        WHERE w.success_by IS NOT NULL AND w.status = 'active'
    )
    SELECT m.deadline, m.id, m.name, m.owner, m.due, m.run, m.fire_time FROM misses m
    WHERE m.due > after AND m.due <= clock_timestamp()
    ORDER BY m.due, m.id, m.deadline LIMIT most
$$;
