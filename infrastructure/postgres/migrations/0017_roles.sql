-- horolog: admits 8
-- Least privilege: a role for each kind of process (client, scanner, worker, auditor), made and granted
-- to by `horolog roles`. None of them may write to the log or the read models by hand. append and the few
-- functions that keep something beside the log act with the owner's rights, and append looks at what the
-- caller's role may say. Who may insert into the log by hand, the owner and the services of
-- `horolog migrate --grant-to`, is not looked at: one comparison, or a second one, for each append.

-- Which role of the server stands for which kind, and the topics that each kind may append. Written by
-- `horolog roles` and, where there are any, by each migration (infrastructure/postgres/roles).
CREATE TABLE :schema.roles (kind text PRIMARY KEY, role name NOT NULL);
CREATE TABLE :schema.may_append (kind text NOT NULL, topic text NOT NULL, PRIMARY KEY (kind, topic));

-- The kinds of process that the session may be, by the login that it began with: SET ROLE hides nothing.
CREATE FUNCTION :schema.kinds_of_session() RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(k.kind), '{}')
    FROM :schema.roles k JOIN pg_catalog.pg_roles g ON g.rolname = k.role
    WHERE pg_catalog.pg_has_role(session_user, g.oid, 'MEMBER')
$$;

-- Raises unless the session may append these events with these rows. Read models are written by whoever
-- appends, so a worker is held to the rows of the occurrences that its events are about, and rows without
-- an event are refused: what nobody wrote down must change nothing. A scanner keeps the index.
CREATE FUNCTION :schema.check_writer(
    event_of integer[], event_stream uuid[], event_topic text[], event_is_occurrence boolean[],
    put_of integer[], put_id uuid[], put_state text[], drop_of integer[], drop_id uuid[],
    end_of integer[], end_id uuid[], end_state text[], move_of integer[], move_id uuid[], cold jsonb
) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    kinds text[];
    odd text;
BEGIN
    IF has_table_privilege(session_user, format('%I.job_events', :literal), 'INSERT') THEN
        RETURN;
    END IF;
    kinds := :schema.kinds_of_session();
    odd := (
        SELECT coalesce(e.topic, 'an event without a topic')
        FROM unnest(event_topic, event_is_occurrence) AS e (topic, is_occurrence)
        WHERE e.is_occurrence IS DISTINCT FROM starts_with(e.topic, 'occurrence.')
           OR NOT EXISTS (SELECT FROM :schema.may_append m
                          WHERE m.topic = e.topic AND m.kind = ANY (kinds))
        LIMIT 1);
    IF odd IS NULL AND NOT 'client' = ANY (kinds) AND cold ? 'forgotten' THEN
        odd := 'that a subject is forgotten';
    ELSIF odd IS NULL AND NOT 'scanner' = ANY (kinds) THEN
        odd := (
            SELECT 'rows that no event of theirs explains'
            FROM (SELECT * FROM unnest(put_of, put_id) UNION ALL
                  SELECT * FROM unnest(drop_of, drop_id) UNION ALL
                  SELECT * FROM unnest(end_of, end_id) UNION ALL
                  SELECT * FROM unnest(move_of, move_id) UNION ALL
                  SELECT (n.row ->> 'of')::integer, NULL
                  FROM jsonb_each(cold) AS c (name, rows)
                  CROSS JOIN LATERAL jsonb_array_elements(c.rows) AS n (row)) AS r (item, id)
            WHERE NOT EXISTS (SELECT FROM unnest(event_of, event_stream) AS e (item, stream)
                              WHERE e.item = r.item
                                AND ('client' = ANY (kinds) OR r.id IS NULL OR e.stream = r.id))
            LIMIT 1);
        IF odd IS NULL AND (put_state && '{claimed}' OR cold ? 'leaders' OR cold ? 'lanes') THEN
            odd := 'what a scanner decides';
        ELSIF odd IS NULL AND NOT 'client' = ANY (kinds)
              AND (cardinality(move_of) > 0 OR cold ? 'jobs' OR cold ? 'revived') THEN
            odd := 'what a client decides';
        ELSIF odd IS NULL AND NOT 'worker' = ANY (kinds)
              AND (put_state && '{running}' OR end_state && '{succeeded,dead}'
                   OR cold ? 'dead_letters') THEN
            odd := 'what a worker decides';
        END IF;
    END IF;
    IF odd IS NOT NULL THEN
        RAISE EXCEPTION '% may not append %', session_user, odd
            USING ERRCODE = 'insufficient_privilege',
                  DETAIL = format('It is of the kinds %s here.', kinds),
                  HINT = 'horolog roles says which login needs which role.';
    END IF;
END $$;

-- append as it is, with the owner's rights and this check before it waits for anything.
DO $do$
DECLARE
    before text := pg_get_functiondef(format('%I.append', :literal)::regproc);
    after text := replace(before, E'BEGIN\n    PERFORM pg_advisory_xact_lock', format(E'BEGIN
    IF session_user <> current_user THEN
        PERFORM %I.check_writer(event_of, event_stream, event_topic, event_is_occurrence, put_of, put_id,
                                put_state, drop_of, drop_id, end_of, end_id, end_state, move_of,
                                move_id, cold);
    END IF;
    PERFORM pg_advisory_xact_lock', :literal));
BEGIN
    IF before = after THEN
        RAISE EXCEPTION 'append does not begin as it did';
    END IF;
    EXECUTE after;
END $do$;

-- A worker and whoever else lives but does not lead. Who leads shares the partitions out among the
-- scanners that it finds, so nobody else may pass for one.
CREATE FUNCTION :schema.announce(me text, my_role text, for_s float8, my_details jsonb)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF my_role = 'scanner' THEN
        RAISE EXCEPTION 'a scanner announces itself with its leases'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    INSERT INTO :schema.instances AS i (instance, role, started_at, seen_until, details)
    VALUES (me, my_role, clock_timestamp(), clock_timestamp() + make_interval(secs => for_s),
            my_details)
    ON CONFLICT (instance) DO UPDATE
        SET seen_until = excluded.seen_until, details = excluded.details
        WHERE i.role = excluded.role;
END $$;
CREATE FUNCTION :schema.retire(me text, my_role text) RETURNS void LANGUAGE sql AS $$
    DELETE FROM :schema.instances i
    WHERE i.instance = me AND i.role = my_role AND my_role <> 'scanner'
$$;

-- A heartbeat: extends the leases of attempts that still run, and says which of them are to stop. The
-- primary keys of next_runs and jobs; locks the rows in the order of their ids.
CREATE FUNCTION :schema.extend_attempts(ids uuid[], attempts integer[], lease_s float8)
    RETURNS TABLE (id uuid, stopping boolean) LANGUAGE sql AS $$
    WITH ours AS (
        SELECT r.id FROM unnest(ids, attempts) AS a (id, attempt)
        JOIN :schema.next_runs r ON r.id = a.id AND r.attempt = a.attempt
                                AND r.state IN ('running', 'stopping')
        ORDER BY r.id FOR UPDATE OF r
    )
    UPDATE :schema.next_runs r SET due_at = clock_timestamp() + make_interval(secs => lease_s)
    FROM ours WHERE r.id = ours.id
    RETURNING r.id, r.state = 'stopping' OR EXISTS (
        SELECT FROM :schema.jobs j WHERE j.id = r.job_id AND j.status = 'cancelled')
$$;

-- What a person decides on a command that was set aside; another one is nobody's but the scanner's.
CREATE FUNCTION :schema.inbox_retry(command bigint) RETURNS boolean LANGUAGE sql AS $$
    WITH again AS (
        UPDATE :schema.inbox i SET refused_at = NULL, error = NULL
        WHERE i.id = command AND i.refused_at IS NOT NULL RETURNING i.partition
    ), told AS MATERIALIZED (
        SELECT pg_notify(:literal || '_due', 'inbox ' || partition) FROM again
    )
    SELECT count(*) > 0 FROM told
$$;
CREATE FUNCTION :schema.inbox_discard(command bigint) RETURNS boolean LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM :schema.inbox i WHERE i.id = command AND i.refused_at IS NOT NULL RETURNING 1
    )
    SELECT count(*) > 0 FROM gone
$$;

-- These act with the owner's rights, find nothing but by its full name, and are called by whom they are
-- granted to. (Without a list of arguments a name has to be the only one of its kind.)
DO $do$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY ARRAY['append', 'append_at_commit', 'announce', 'retire', 'extend_attempts',
        'inbox_retry', 'inbox_discard', 'renew_leases', 'leave', 'mark_published', 'extend_windows',
        'limit_queue', 'inbox_put', 'subject_key', 'create_month_partitions']
    LOOP
        EXECUTE format('ALTER FUNCTION %I.%I SECURITY DEFINER SET search_path = pg_catalog, pg_temp',
                       :literal, one);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %I.%I FROM PUBLIC', :literal, one);
    END LOOP;
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %1$I.grant_service, '
                   '%1$I.grant_service_before_subjects, %1$I.grant_service_before_the_inbox '
                   'FROM PUBLIC', :literal);
END $do$;

-- Services that were granted to by an earlier release go on without a hand.
DO $do$
DECLARE
    service name;
BEGIN
    FOR service IN
        SELECT DISTINCT g.grantee::regrole::name
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g
        WHERE c.oid = format('%I.at_commit', :literal)::regclass AND g.privilege_type = 'INSERT'
          AND g.grantee <> c.relowner AND g.grantee <> 0
    LOOP
        PERFORM :schema.grant_service(service);
    END LOOP;
END $do$;
