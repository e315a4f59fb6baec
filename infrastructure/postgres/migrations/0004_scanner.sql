-- What scanners read and keep beside the log: leases, and ranges of the next-run index. Functions, so
-- that each is one round trip, and planned for their indexes whatever the tables' statistics say.

-- A heartbeat: announces the instance, extends the leases that are still its own under the tokens
-- that it states, and returns the database's time, the living scanners, and every partition. A row
-- that an election or a publishing mark holds is passed over: the next renewal is a third of a lease
-- away, and waiting for it in another order could end in a deadlock.
CREATE FUNCTION :schema.renew_leases(
    me text, my_role text, lease_s float8, my_details jsonb, my_partitions smallint[],
    my_tokens integer[],
    OUT moment_us bigint, OUT alive text[], OUT partitions smallint[], OUT streams uuid[],
    OUT versions integer[], OUT leaders text[], OUT tokens integer[], OUT running boolean[],
    OUT published bigint[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    stamp timestamptz := clock_timestamp();
    joined boolean;
BEGIN
    INSERT INTO :schema.instances AS i (instance, role, started_at, seen_until, details)
    VALUES (me, my_role, stamp, stamp + make_interval(secs => lease_s), my_details)
    ON CONFLICT (instance) DO UPDATE
        SET seen_until = excluded.seen_until, details = excluded.details
    RETURNING i.xmax = 0 INTO joined;
    IF joined THEN
        PERFORM pg_notify(:literal || '_due', 'scanners');
    END IF;
    DELETE FROM :schema.instances i
    WHERE i.role = my_role AND i.seen_until < stamp - interval '10 minutes';

    WITH mine AS MATERIALIZED (
        SELECT p.partition FROM :schema.partitions p
        JOIN unnest(my_partitions, my_tokens) AS m (partition, token)
          ON m.partition = p.partition AND m.token = p.token
        WHERE p.instance = me
        FOR UPDATE OF p SKIP LOCKED
    )
    UPDATE :schema.partitions p SET lease_until = stamp + make_interval(secs => lease_s)
    FROM mine WHERE p.partition = mine.partition;

    moment_us := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    SELECT coalesce(array_agg(i.instance ORDER BY i.instance), '{}') INTO alive
    FROM :schema.instances i WHERE i.role = my_role AND i.seen_until >= stamp;
    SELECT array_agg(p.partition ORDER BY p.partition), array_agg(p.stream ORDER BY p.partition),
           array_agg(p.version ORDER BY p.partition), array_agg(p.instance ORDER BY p.partition),
           array_agg(p.token ORDER BY p.partition),
           array_agg(p.instance IS NOT NULL AND p.lease_until >= stamp ORDER BY p.partition),
           array_agg(p.published ORDER BY p.partition)
    INTO partitions, streams, versions, leaders, tokens, running, published
    FROM :schema.partitions p;
END $$;

-- The instance is no longer among the living: the others need not wait for their next renewal.
CREATE FUNCTION :schema.leave(me text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM :schema.instances i WHERE i.instance = me;
    PERFORM pg_notify(:literal || '_due', 'scanners');
END $$;

-- How far a partition's claims are in the queue; kept by its leader alone, and never set back.
CREATE FUNCTION :schema.mark_published(
    me text, my_partitions smallint[], my_tokens integer[], positions bigint[]
) RETURNS integer LANGUAGE sql AS $$
    WITH mine AS MATERIALIZED (
        SELECT p.partition, m.reached FROM :schema.partitions p
        JOIN unnest(my_partitions, my_tokens, positions) AS m (partition, token, reached)
          ON m.partition = p.partition AND m.token = p.token
        WHERE p.instance = me AND p.published < m.reached
        FOR UPDATE OF p SKIP LOCKED
    ), marked AS (
        UPDATE :schema.partitions p SET published = mine.reached
        FROM mine WHERE p.partition = mine.partition
        RETURNING 1
    )
    SELECT count(*)::integer FROM marked
$$;

-- Pages of next_runs_fires, one for each range (partition, key, end), in the order of the key, each
-- row with what it is to share fairly with others: its queue, its tenant, its priority.
CREATE FUNCTION :schema.fires_due(
    of_partition smallint[], after_due timestamptz[], after_id uuid[], until timestamptz[],
    most integer
) RETURNS TABLE (range_number integer, due_us bigint, id uuid, queue text, tenant text,
                 priority smallint)
    LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off
    SET enable_sort = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT w.n::integer, (extract(epoch FROM r.due_at) * 1000000)::bigint, r.id,
           coalesce(j.queue, ''), coalesce(j.tenant, ''), coalesce(j.priority, 0::smallint)
    FROM unnest(of_partition, after_due, after_id, until) WITH ORDINALITY
         AS w (partition, due, id, until, n)
    CROSS JOIN LATERAL (
        SELECT x.due_at, x.id, x.job_id FROM :schema.next_runs x
        WHERE NOT x.look AND x.lane IS NULL AND x.partition = w.partition AND (x.due_at, x.id) > (w.due, w.id)
          AND x.due_at <= w.until
        ORDER BY x.due_at, x.id LIMIT most) r
    LEFT JOIN :schema.jobs j ON j.id = r.job_id;
END $$;

-- The same of next_runs_looks.
CREATE FUNCTION :schema.looks_due(
    of_partition smallint[], after_due timestamptz[], after_id uuid[], until timestamptz[],
    most integer
) RETURNS TABLE (range_number integer, due_us bigint, id uuid, state text, "position" bigint)
    LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off
    SET enable_sort = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT w.n::integer, (extract(epoch FROM r.due_at) * 1000000)::bigint, r.id, r.state, r.position
    FROM unnest(of_partition, after_due, after_id, until) WITH ORDINALITY
         AS w (partition, due, id, until, n)
    CROSS JOIN LATERAL (
        SELECT x.due_at, x.id, x.state, x.position FROM :schema.next_runs x
        WHERE x.look AND x.partition = w.partition AND (x.due_at, x.id) > (w.due, w.id)
          AND x.due_at <= w.until
        ORDER BY x.due_at, x.id LIMIT most) r;
END $$;

-- Moves the next look of claims that nobody has attempted yet; those changed meanwhile are left.
CREATE FUNCTION :schema.extend_windows(ids uuid[], versions integer[], after_s float8[])
    RETURNS integer LANGUAGE sql AS $$
    WITH held AS MATERIALIZED (
        SELECT r.id, w.after FROM :schema.next_runs r
        JOIN unnest(ids, versions, after_s) AS w (id, version, after)
          ON w.id = r.id AND w.version = r.version
        WHERE r.state = 'claimed'
        FOR UPDATE OF r SKIP LOCKED
    ), moved AS (
        UPDATE :schema.next_runs r
        SET due_at = clock_timestamp() + make_interval(secs => held.after)
        FROM held WHERE r.id = held.id
        RETURNING 1
    )
    SELECT count(*)::integer FROM moved
$$;
