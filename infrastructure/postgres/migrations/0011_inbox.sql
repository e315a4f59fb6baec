-- horolog: admits 8
-- The inbox: commands that clients have put down in transactions of their own. A rollback leaves
-- nothing of them; a commit makes them visible, and the leader of the job's partition carries them out.
--
-- Putting down takes no lock that the log knows of: a client may keep its transaction open for as long
-- as it likes, at any isolation level. What is carried out leaves the inbox in the transaction that
-- appends it, so it is in the log exactly once, whoever takes it and however often a commit is cut off.

CREATE TABLE :schema.inbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partition smallint NOT NULL,
    job_id uuid NOT NULL,
    birth boolean NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    document json NOT NULL,
    -- Set aside: what the log's state refused by the time the transaction had committed.
    refused_at timestamptz,
    error text
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX inbox_waiting ON :schema.inbox (partition, id) WHERE refused_at IS NULL;
CREATE INDEX inbox_job ON :schema.inbox (job_id, id);
CREATE INDEX inbox_refused ON :schema.inbox (id) WHERE refused_at IS NOT NULL;
-- Two transactions that register one key: the second waits for the first, and then sees its job.
CREATE UNIQUE INDEX inbox_births ON :schema.inbox (job_id) WHERE birth AND refused_at IS NULL;

-- What a command is decided from before it is put down: the time, the job in the log, and what the
-- inbox holds of it for this transaction. Text in, text out, so that any driver can ask. The primary
-- keys, inbox_job and job_events_requests; no locks.
CREATE FUNCTION :schema.inbox_look(asked text) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT json_build_object(
        'now', clock_timestamp(),
        'partitions', (SELECT n.partitions FROM :schema.namespace n),
        'job', (SELECT json_build_array(j.id, j.version, j.status, j.partition, j.definition::text,
                                        j.key, coalesce(r.fire_time, j.held_fire),
                                        coalesce(r.fires, j.fires))
                FROM :schema.jobs j LEFT JOIN :schema.next_runs r ON r.id = j.id
                WHERE j.id = a.job_id),
        'triggered', (SELECT json_build_object('occurrence', d.said ->> 'occurrence_id',
                                               'fire_time', d.said ->> 'fire_time')
                      FROM :schema.job_events e
                      CROSS JOIN LATERAL (SELECT :schema.decoded(e.state) AS said) d
                      WHERE e.stream = a.job_id AND e.topic = 'job.triggered.1'
                        AND :schema.decoded(e.state) ->> 'request_id' = a.request_id
                      ORDER BY e.version LIMIT 1),
        'pending', (SELECT coalesce(json_agg(i.document ORDER BY i.id), '[]')
                    FROM :schema.inbox i WHERE i.job_id = a.job_id AND i.refused_at IS NULL)
    )::text
    FROM json_to_record(asked::json) AS a (job_id uuid, request_id text)
$$;

-- Puts a command down in the caller's transaction, and has the leader told when that commits. Returns
-- its number, or nothing where another registration of the same key got there first.
CREATE FUNCTION :schema.inbox_put(asked text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    a record;
    number bigint;
BEGIN
    SELECT * INTO a FROM json_to_record(asked::json)
        AS x (partition smallint, job_id uuid, birth boolean, document json);
    INSERT INTO :schema.inbox (partition, job_id, birth, document)
    VALUES (a.partition, a.job_id, a.birth, a.document)
    ON CONFLICT (job_id) WHERE birth AND refused_at IS NULL DO NOTHING
    RETURNING id INTO number;
    IF number IS NULL THEN
        RETURN NULL;
    END IF;
    -- The registration that was waited for may have been carried out meanwhile.
    IF a.birth AND EXISTS (SELECT FROM :schema.jobs j WHERE j.id = a.job_id) THEN
        DELETE FROM :schema.inbox i WHERE i.id = number;
        RETURN NULL;
    END IF;
    PERFORM pg_notify(:literal || '_due', 'inbox ' || a.partition);
    RETURN number::text;
END $$;

-- Beside what a service got before.
ALTER FUNCTION :schema.grant_service(name) RENAME TO grant_service_before_the_inbox;
CREATE FUNCTION :schema.grant_service(role name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM :schema.grant_service_before_the_inbox(role);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I.inbox TO %I', :literal, role);
END $$;

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
