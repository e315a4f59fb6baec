-- append: the only way into the log. One call is one transaction and one round trip, whatever the
-- size of the batch: it takes the log lock, checks fences and expected versions, writes the events
-- of the decisions that pass and the rows that follow from them, and tells who waits for news.
--
-- The lock: one advisory lock per namespace, held until the commit is durable. Positions are drawn
-- under it, so they become visible in their order and no follower can pass over one that commits
-- late. (A table lock would do too, but stands in the way of autovacuum.) All of Python's work was
-- done before: nothing under the lock waits for a network.
--
-- A decision is refused alone: its neighbours in the batch go on. guard_of says what it rests on:
--   0 nothing   1 a next_runs row at this version (a job's: with this due time)
--   2 a job at this version (0: it must not exist), its next fire time still this one, where given
--   3 a partition at this version, unleased
--   4 to 8: an occurrence's row at this version, scheduled, claimed, running, retrying or stopping,
--   with this attempt as its last one
-- Verdicts: 0 accepted, 1 a guard no longer holds or a version is taken, 2 a newer leader was elected,
-- 3 a lane is full (see lanes_full).

CREATE FUNCTION :schema.append(
    guard_of smallint[], guard_id uuid[], guard_version integer[], guard_due timestamptz[],
    guard_attempt integer[], guard_partition smallint[],
    fence_instance text, fence_partition smallint[], fence_token integer[],
    event_of integer[], event_stream uuid[], event_version integer[], event_topic text[],
    event_state bytea[], event_is_occurrence boolean[],
    put_of integer[], put_id uuid[], put_job uuid[], put_partition smallint[],
    put_due timestamptz[], put_after float8[], put_look boolean[], put_state text[],
    put_kind text[], put_version integer[], put_fire timestamptz[], put_attempt integer[],
    put_failures integer[], put_fires integer[],
    drop_of integer[], drop_id uuid[],
    end_of integer[], end_id uuid[], end_job uuid[], end_partition smallint[],
    end_fire timestamptz[], end_kind text[], end_state text[], end_version integer[],
    end_attempt integer[], end_failures integer[],
    move_of integer[], move_id uuid[], move_version integer[], move_status text[],
    move_fires integer[],
    cold jsonb, news_horizon float8,
    OUT verdicts smallint[], OUT last_position bigint, OUT recorded_at timestamptz
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    refused integer[] := '{}';
    stale smallint[];
    stamp timestamptz;
    news text;
    link_from bigint;
    link_to bigint;
    link_events integer;
    link_content bytea;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(:literal || '/log', 0));
    stamp := clock_timestamp();

    -- Fences first: what a newer leader has taken over is refused whatever its rows look like.
    IF fence_instance IS NOT NULL THEN
        SELECT array_agg(f.partition) INTO stale
        FROM unnest(fence_partition, fence_token) AS f (partition, token)
        LEFT JOIN :schema.partitions p ON p.partition = f.partition
        WHERE p.token IS DISTINCT FROM f.token OR p.instance IS DISTINCT FROM fence_instance;
    END IF;

    SELECT coalesce(array_agg(g.item::integer), '{}') INTO refused
    FROM unnest(guard_of, guard_id, guard_version, guard_due, guard_attempt) WITH ORDINALITY
         AS g (kind, id, version, due, attempt, item)
    WHERE CASE g.kind
        WHEN 0 THEN false
        -- A job's row is decided on with its due time, always: what comes without one speaks of an
        -- occurrence, and a message that calls a job one must not move the job's row.
        WHEN 1 THEN NOT EXISTS (
            SELECT FROM :schema.next_runs r
            WHERE r.id = g.id AND r.version = g.version
              AND CASE WHEN g.due IS NULL THEN r.kind <> 'job' ELSE r.due_at = g.due END)
        -- A claim moves a job on without touching its version: what was decided from the fire time
        -- before it would move the job back.
        WHEN 2 THEN g.version IS DISTINCT FROM coalesce(
            (SELECT j.version FROM :schema.jobs j WHERE j.id = g.id), 0)
            OR (g.due IS NOT NULL AND NOT EXISTS (
                SELECT FROM :schema.next_runs r WHERE r.id = g.id AND r.fire_time = g.due))
        WHEN 3 THEN NOT EXISTS (
            SELECT FROM :schema.partitions p
            WHERE p.stream = g.id AND p.version = g.version
              AND (p.instance IS NULL OR p.lease_until < stamp OR p.instance = fence_instance))
        -- The version alone would do for honest decisions. A forged message may name the version of a
        -- run that is not claimed, or another attempt, and must not have that attempted.
        ELSE NOT EXISTS (
            SELECT FROM :schema.next_runs r
            WHERE r.id = g.id AND r.version = g.version AND r.kind <> 'job' AND r.attempt = g.attempt
              AND r.state = ('{scheduled,claimed,running,retrying,stopping}'::text[])[g.kind - 3])
        END;

    verdicts := array_fill(0::smallint, ARRAY[cardinality(guard_of)]);
    IF stale IS NOT NULL THEN
        FOR i IN 1 .. cardinality(guard_of) LOOP
            IF guard_partition[i] = ANY (stale) THEN
                verdicts[i] := 2;
            END IF;
        END LOOP;
        INSERT INTO :schema.counters AS c (name, value)
        SELECT 'stale_claims_refused', count(*) FROM unnest(verdicts) v WHERE v = 2
        ON CONFLICT (name) DO UPDATE SET value = c.value + excluded.value;
    END IF;
    FOR i IN 1 .. cardinality(refused) LOOP
        IF verdicts[refused[i]] = 0 THEN
            verdicts[refused[i]] := 1;
        END IF;
    END LOOP;

    IF cold ? 'lanes' THEN
        verdicts := :schema.lanes_full(cold -> 'lanes', verdicts, guard_id, stamp);
    END IF;

    -- Events get their positions in the order of the batch. A version that is taken, in the log or
    -- by an earlier decision of the batch (one message delivered twice, a retry after a cut), refuses
    -- the decision that wanted it and no other. The primary keys find that out, so it costs nothing
    -- where it does not happen.
    LOOP
        BEGIN
            WITH accepted AS MATERIALIZED (
                SELECT nextval(:positions) AS position, e.*
                FROM unnest(event_of, event_stream, event_version, event_topic, event_state,
                            event_is_occurrence)
                     AS e (item, stream, version, topic, state, is_occurrence)
                WHERE verdicts[e.item] = 0
            ), of_occurrences AS (
                INSERT INTO :schema.occurrence_events
                    (position, recorded_at, stream, version, topic, state)
                SELECT a.position, stamp, a.stream, a.version, a.topic, a.state
                FROM accepted a WHERE a.is_occurrence
            ), of_jobs AS (
                INSERT INTO :schema.job_events
                    (position, recorded_at, stream, version, topic, state)
                SELECT a.position, stamp, a.stream, a.version, a.topic, a.state
                FROM accepted a WHERE NOT a.is_occurrence
            )
            -- As application/verify/hash_chain.py has it.
            SELECT min(a.position), max(a.position), count(*)::integer,
                   sha256(string_agg(int8send(a.position) || timestamptz_send(stamp)
                                     || uuid_send(a.stream) || int4send(a.version)
                                     || int4send(octet_length(a.topic)) || convert_to(a.topic, 'UTF8')
                                     || int4send(octet_length(a.state)) || a.state,
                                     ''::bytea ORDER BY a.position))
            INTO link_from, link_to, link_events, link_content
            FROM accepted a;
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            refused := :schema.decisions_beaten(verdicts, event_of, event_stream, event_version);
            IF refused IS NULL THEN
                RAISE;
            END IF;
            FOR i IN 1 .. cardinality(refused) LOOP
                verdicts[refused[i]] := 1;
            END LOOP;
        END;
    END LOOP;

    IF link_events > 0 THEN
        INSERT INTO :schema.chain (position_to, position_from, events, content, digest)
        SELECT link_to, link_from, link_events, link_content,
               sha256(coalesce((SELECT c.digest FROM :schema.chain c
                                ORDER BY c.position_to DESC LIMIT 1), ''::bytea)
                      || int8send(link_from) || int8send(link_to) || int4send(link_events)
                      || link_content);
    END IF;

    last_position := (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END
                      FROM :schema.positions s);
    recorded_at := stamp;

    IF cardinality(drop_of) > 0 THEN
        DELETE FROM :schema.next_runs r
        USING unnest(drop_of, drop_id) AS d (item, id)
        WHERE r.id = d.id AND verdicts[d.item] = 0;
    END IF;

    IF cardinality(put_of) > 0 THEN
        INSERT INTO :schema.next_runs AS r (due_at, fire_time, position, id, job_id, version, attempt,
                                            failures, fires, partition, look, state, kind)
        SELECT coalesce(n.due, stamp + make_interval(secs => n.after)), n.fire, last_position, n.id,
               n.job, n.version, n.attempt, n.failures, n.fires, n.partition, n.look, n.state, n.kind
        FROM unnest(put_of, put_id, put_job, put_partition, put_due, put_after, put_look, put_state,
                    put_kind, put_version, put_fire, put_attempt, put_failures, put_fires)
             AS n (item, id, job, partition, due, after, look, state, kind, version, fire, attempt,
                   failures, fires)
        WHERE verdicts[n.item] = 0
        ON CONFLICT (id) DO UPDATE SET
            due_at = excluded.due_at, fire_time = excluded.fire_time, position = excluded.position,
            version = excluded.version, attempt = excluded.attempt, failures = excluded.failures,
            fires = excluded.fires, look = excluded.look, state = excluded.state, lane = NULL;
    END IF;

    -- Slots follow the rows: a claim takes them, and whatever ends an attempt gives them back. Where
    -- nobody ever used a lane, this costs the look at an empty table.
    IF EXISTS (SELECT FROM :schema.lanes_in_use) THEN
        PERFORM :schema.release_slots(verdicts, drop_of, drop_id, put_of, put_id, put_look);
    END IF;
    IF cold ? 'lanes' THEN
        PERFORM :schema.take_slots(cold -> 'lanes', verdicts, put_of, put_id, put_look, stamp);
    END IF;

    IF cardinality(end_of) > 0 THEN
        INSERT INTO :schema.executions AS x (finished_at, fire_time, id, job_id, version, attempt,
                                             failures, partition, state, kind)
        SELECT stamp, n.fire, n.id, n.job, n.version, n.attempt, n.failures, n.partition, n.state, n.kind
        FROM unnest(end_of, end_id, end_job, end_partition, end_fire, end_kind, end_state,
                    end_version, end_attempt, end_failures)
             AS n (item, id, job, partition, fire, kind, state, version, attempt, failures)
        WHERE verdicts[n.item] = 0
        ON CONFLICT (id) DO UPDATE SET
            finished_at = excluded.finished_at, version = excluded.version,
            attempt = excluded.attempt, failures = excluded.failures, state = excluded.state;
    END IF;

    IF cardinality(move_of) > 0 THEN
        UPDATE :schema.jobs j
        SET version = n.version, status = n.status, fires = n.fires, held_fire = NULL,
            changed_at = stamp
        FROM unnest(move_of, move_id, move_version, move_status, move_fires)
             AS n (item, id, version, status, fires)
        WHERE j.id = n.id AND verdicts[n.item] = 0;
    END IF;

    IF cold IS NOT NULL THEN
        PERFORM :schema.append_cold(cold, verdicts, stamp);
    END IF;

    -- What comes due soon is told to the leaders at once; the sweep finds it all the same. Where it
    -- is too much to name, the partition is told to be read again from the first of it on.
    IF cardinality(put_of) > 0 AND news_horizon > 0 THEN
        FOR news IN
            WITH soon AS (
                SELECT n.partition, n.id, (extract(epoch FROM n.due) * 1000000)::bigint AS due_us,
                       count(*) OVER () AS total
                FROM unnest(put_of, put_id, put_partition, put_due) AS n (item, id, partition, due)
                WHERE verdicts[n.item] = 0
                  AND n.due <= stamp + make_interval(secs => news_horizon)
            ), lines AS (
                SELECT format('%s %s %s', partition, due_us, id) AS line FROM soon WHERE total <= 500
                UNION ALL
                SELECT format('%s %s *', partition, min(due_us)) FROM soon WHERE total > 500
                GROUP BY partition
            )
            SELECT string_agg(line, E'\n')
            FROM (SELECT line, (row_number() OVER () - 1) / 100 AS page FROM lines) pages
            GROUP BY page
        LOOP
            PERFORM pg_notify(:literal || '_due', news);
        END LOOP;
    END IF;
    -- Whoever runs what is to stop is told at once; its next heartbeat finds it all the same.
    IF 'stopping' = ANY (put_state) THEN
        PERFORM pg_notify(:literal || '_stop', ids)
        FROM (SELECT string_agg(id::text, ' ') AS ids
              FROM (SELECT n.id, (row_number() OVER () - 1) / 100 AS page
                    FROM unnest(put_of, put_id, put_state) AS n (item, id, state)
                    WHERE verdicts[n.item] = 0 AND n.state = 'stopping') pages
              GROUP BY page) told;
    END IF;
    PERFORM pg_notify(:literal || '_log', '');
END $$;

-- The decisions, of those accepted so far, with an event whose place is taken: in the log already,
-- or, where there is none of those, by another decision before them in the batch. Null: neither.
CREATE FUNCTION :schema.decisions_beaten(
    verdicts smallint[], event_of integer[], event_stream uuid[], event_version integer[]
) RETURNS integer[] LANGUAGE sql STABLE AS $$
    WITH wanted AS MATERIALIZED (
        SELECT e.* FROM unnest(event_of, event_stream, event_version) AS e (item, stream, version)
        WHERE verdicts[e.item] = 0
    ), in_log AS (
        SELECT array_agg(DISTINCT w.item) AS items FROM wanted w
        WHERE EXISTS (SELECT FROM :schema.occurrence_events o
                      WHERE o.stream = w.stream AND o.version = w.version)
           OR EXISTS (SELECT FROM :schema.job_events j
                      WHERE j.stream = w.stream AND j.version = w.version)
    ), in_batch AS (
        SELECT array_agg(DISTINCT n.item) AS items
        FROM (SELECT w.item, row_number() OVER (PARTITION BY w.stream, w.version ORDER BY w.item) AS n
              FROM wanted w) n
        WHERE n.n > 1
    )
    SELECT coalesce(in_log.items, in_batch.items) FROM in_log, in_batch
$$;

-- For callers whose batch stands or falls as one: raises, and so takes the append back, unless all
-- was accepted.
CREATE FUNCTION :schema.all_accepted(verdicts smallint[]) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest(verdicts) v WHERE v <> 0) THEN
        RAISE EXCEPTION 'refused: what the append was decided from has changed'
            USING ERRCODE = 'unique_violation';
    END IF;
    RETURN true;
END $$;

-- The rows that change seldom: definitions, dead letters, leaders. One JSON document holds them, a
-- list for each table; "of" is the number of the decision that a row belongs to.
CREATE FUNCTION :schema.append_cold(cold jsonb, verdicts smallint[], stamp timestamptz) RETURNS void
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF cold ? 'jobs' THEN
        INSERT INTO :schema.jobs AS j (id, key, version, status, partition, name, queue, owner, labels,
                                       definition, held_fire, fires, registered_at, changed_at)
        SELECT n.id, n.key, n.version, n.status, n.partition, n.name, n.queue, n.owner, n.labels,
               n.definition::json, n.held_fire, n.fires, stamp, stamp
        FROM jsonb_to_recordset(cold -> 'jobs') AS n (of integer, id uuid, key text, version integer,
             status text, partition smallint, name text, queue text, owner text, labels jsonb,
             definition text, held_fire timestamptz, fires integer)
        WHERE verdicts[n.of] = 0
        ON CONFLICT (id) DO UPDATE SET
            version = excluded.version, status = excluded.status, queue = excluded.queue,
            owner = excluded.owner, labels = excluded.labels, definition = excluded.definition,
            held_fire = excluded.held_fire, fires = excluded.fires,
            changed_at = excluded.changed_at;
    END IF;
    IF cold ? 'dead_letters' THEN
        INSERT INTO :schema.dead_letters AS d (id, job_id, name, owner, cause, kind, error, attempt,
                                               fire_time, since)
        SELECT n.id, n.job_id, n.name, n.owner, n.cause, n.kind, n.error, n.attempt, n.fire_time, stamp
        FROM jsonb_to_recordset(cold -> 'dead_letters') AS n (of integer, id uuid, job_id uuid,
             name text, owner text, cause text, kind text, error text, attempt integer,
             fire_time timestamptz)
        WHERE verdicts[n.of] = 0
        ON CONFLICT (id) DO UPDATE SET
            cause = excluded.cause, kind = excluded.kind, error = excluded.error,
            attempt = excluded.attempt, since = excluded.since;
    END IF;
    IF cold ? 'revived' THEN
        DELETE FROM :schema.dead_letters d
        USING jsonb_to_recordset(cold -> 'revived') AS n (of integer, id uuid)
        WHERE d.id = n.id AND verdicts[n.of] = 0;
        DELETE FROM :schema.executions x
        USING jsonb_to_recordset(cold -> 'revived') AS n (of integer, id uuid, finished boolean)
        WHERE x.id = n.id AND verdicts[n.of] = 0 AND NOT n.finished;
    END IF;
    IF cold ? 'leaders' THEN
        UPDATE :schema.partitions p
        SET version = n.version, instance = n.instance, token = n.token,
            lease_until = CASE WHEN n.instance IS NULL THEN '-infinity'::timestamptz
                               ELSE stamp + make_interval(secs => n.lease_s) END
        FROM jsonb_to_recordset(cold -> 'leaders') AS n (of integer, partition smallint,
             version integer, instance text, token integer, lease_s float8)
        WHERE p.partition = n.partition AND verdicts[n.of] = 0;
    END IF;
END $$;

-- For services that are not the owner: they read, they append through the function, they keep the
-- read models; nobody may change or delete an event. Called by `horolog migrate --grant-to ROLE`.
CREATE FUNCTION :schema.grant_service(role name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', :literal, role);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I', :literal, role);
    EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO %I', :literal, role);
    EXECUTE format('GRANT INSERT ON %1$I.job_events, %1$I.occurrence_events, %1$I.chain TO %2$I',
                   :literal, role);
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %1$I.next_runs, %1$I.jobs, %1$I.executions, '
                   '%1$I.dead_letters, %1$I.instances, %1$I.counters, %1$I.tracking, '
                   '%1$I.lane_slots, %1$I.lane_buckets, %1$I.lanes_in_use, %1$I.queue_limits TO %2$I',
                   :literal, role);
    EXECUTE format('GRANT UPDATE ON %I.partitions TO %I', :literal, role);
    EXECUTE format('GRANT INSERT, DELETE ON %I.at_commit TO %I', :literal, role);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %I TO %I', :literal, role);
END $$;
