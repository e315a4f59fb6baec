-- horolog: admits 8
-- Alerts: rules of what is too much for an owner, and what they are decided from. What was raised, and
-- who was told, is in the log alone.

-- Beside the log, because a webhook's path or a command's arguments may be a secret: the events say
-- what was set without it. Without an owner it is everybody's who has no rule of their own.
CREATE TABLE :schema.alert_rules (
    id text PRIMARY KEY GENERATED ALWAYS AS (coalesce('=' || owner, '')) STORED,
    owner text,
    dead_letters integer,
    dead_letter_age float8,
    deadlines boolean NOT NULL,
    rule jsonb NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text NOT NULL
);

-- The ends of the streams of all alerts that were ever raised, at most so many streams: the index is
-- skipped through, whatever the length of the streams.
CREATE FUNCTION :schema.alert_tails(tail integer, most integer)
    RETURNS TABLE (stream uuid, version integer, recorded_at timestamptz, topic text, state bytea)
    LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    WITH RECURSIVE streams AS (
        (SELECT e.stream, 1 AS n FROM :schema.job_events e
         WHERE e.topic LIKE 'alert.%' ORDER BY e.stream LIMIT 1)
        UNION ALL
        SELECT next.stream, s.n + 1
        FROM streams s CROSS JOIN LATERAL (
            SELECT e.stream FROM :schema.job_events e
            WHERE e.topic LIKE 'alert.%' AND e.stream > s.stream ORDER BY e.stream LIMIT 1) next
        WHERE s.n < most
    )
    SELECT s.stream, e.version, e.recorded_at, e.topic, e.state
    FROM streams s CROSS JOIN LATERAL (
        SELECT x.version, x.recorded_at, x.topic, x.state FROM :schema.job_events x
        WHERE x.topic LIKE 'alert.%' AND x.stream = s.stream ORDER BY x.version DESC LIMIT tail) e
    ORDER BY s.stream, e.version
$$;

-- Each owner's dead letters, counted up to a bound, and since when the oldest lies there.
CREATE FUNCTION :schema.letters_of_owners(most integer, owners integer)
    RETURNS TABLE (owner text, depth bigint, oldest timestamptz)
    LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    WITH RECURSIVE known AS (
        (SELECT d.owner, 1 AS n FROM :schema.dead_letters d
         WHERE d.owner IS NOT NULL ORDER BY d.owner LIMIT 1)
        UNION ALL
        SELECT next.owner, k.n + 1
        FROM known k CROSS JOIN LATERAL (
            SELECT d.owner FROM :schema.dead_letters d
            WHERE d.owner > k.owner ORDER BY d.owner LIMIT 1) next
        WHERE k.n < owners
    )
    SELECT k.owner, counted.depth, counted.oldest
    FROM known k CROSS JOIN LATERAL (
        SELECT count(*) AS depth, min(d.since) AS oldest
        FROM (SELECT x.since FROM :schema.dead_letters x WHERE x.owner = k.owner
              ORDER BY x.since LIMIT most) d) counted
    UNION ALL
    SELECT NULL, count(*), min(d.since)
    FROM (SELECT x.since FROM :schema.dead_letters x WHERE x.owner IS NULL
          ORDER BY x.since LIMIT most) d
    HAVING count(*) > 0
$$;

-- All that alerts are decided from, in one round trip. Without a rule nothing is counted.
CREATE FUNCTION :schema.alerts_seen(
    tail integer, most integer,
    OUT moment timestamptz, OUT partitions integer, OUT rules jsonb, OUT letters jsonb, OUT late jsonb,
    OUT tails jsonb
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    asks_letters boolean;
    asks_late boolean;
    deepest integer;
BEGIN
    moment := clock_timestamp();
    partitions := (SELECT count(*) FROM :schema.partitions);
    SELECT coalesce(jsonb_agg(r.rule), '[]'),
           coalesce(bool_or(r.dead_letters IS NOT NULL OR r.dead_letter_age IS NOT NULL), false),
           coalesce(bool_or(r.deadlines), false), greatest(1000, max(r.dead_letters))
    INTO rules, asks_letters, asks_late, deepest
    FROM :schema.alert_rules r;
    SELECT coalesce(jsonb_agg(jsonb_build_array(t.stream, t.version, t.recorded_at, t.topic,
                                                convert_from(t.state, 'UTF8'))), '[]')
    INTO tails FROM :schema.alert_tails(tail, 3 * most) t;
    letters := '[]';
    late := '[]';
    IF asks_letters THEN
        SELECT coalesce(jsonb_agg(jsonb_build_array(l.owner, l.depth, l.oldest)), '[]') INTO letters
        FROM :schema.letters_of_owners(deepest, most) l;
    END IF;
    IF asks_late THEN
        -- What lasts, and what was said in the last minute: a run that began late has begun by now.
        WITH lasting AS (
            SELECT m.owner, count(*) AS misses
            FROM :schema.deadlines_missed('1970-01-01 00:00:00+00', 10000) m GROUP BY m.owner
        ), told AS (
            SELECT :schema.decoded(e.state) ->> 'owner' AS owner, count(*) AS misses
            FROM (SELECT state FROM :schema.job_events
                  WHERE topic = 'deadline.missed.1'
                    AND recorded_at > clock_timestamp() - interval '1 minute' LIMIT 10000) e
            GROUP BY 1
        )
        SELECT coalesce(jsonb_agg(jsonb_build_array(o.owner, o.misses)), '[]') INTO late
        FROM (SELECT b.owner, max(b.misses) AS misses
              FROM (SELECT * FROM lasting UNION ALL SELECT * FROM told) b
              GROUP BY b.owner LIMIT most) o;
    END IF;
END $$;

-- As migrations/0003 has it, with the rules of alerts.
CREATE OR REPLACE FUNCTION :schema.grant_service(role name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', :literal, role);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I', :literal, role);
    EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO %I', :literal, role);
    EXECUTE format('GRANT INSERT ON %1$I.job_events, %1$I.occurrence_events, %1$I.chain TO %2$I',
                   :literal, role);
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %1$I.next_runs, %1$I.jobs, %1$I.executions, '
                   '%1$I.dead_letters, %1$I.instances, %1$I.counters, %1$I.tracking, '
                   '%1$I.lane_slots, %1$I.lane_buckets, %1$I.lanes_in_use, %1$I.queue_limits, '
                   '%1$I.alert_rules TO %2$I',
                   :literal, role);
    EXECUTE format('GRANT UPDATE ON %I.partitions TO %I', :literal, role);
    EXECUTE format('GRANT INSERT, DELETE ON %I.at_commit TO %I', :literal, role);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %I TO %I', :literal, role);
END $$;

-- Who was granted what a service needs before this table came has it here too.
DO $$
DECLARE
    role name;
BEGIN
    FOR role IN
        SELECT DISTINCT g.rolname FROM pg_catalog.pg_class c
        CROSS JOIN LATERAL aclexplode(c.relacl) a
        JOIN pg_catalog.pg_roles g ON g.oid = a.grantee
        WHERE c.oid = format('%I.%I', :literal, 'queue_limits')::regclass
          AND a.privilege_type = 'INSERT' AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('SELECT %I.grant_service(%L)', :literal, role);
    END LOOP;
END $$;
