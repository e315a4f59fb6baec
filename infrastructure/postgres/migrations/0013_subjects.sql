-- horolog: admits 8
-- Subjects: a key for each person whose data jobs carry. What is a person's in events and rows is
-- cipher text; forgetting somebody destroys the key and leaves the log as it is.

-- wrapped: the key, encrypted with a master key that this database never sees; master: which one.
-- Both are null once the subject is forgotten: the row stays and says that there is nothing to read,
-- and that nothing of this subject may come again. Without vacuum the old row would stay in the file.
CREATE TABLE :schema.subject_keys (
    subject text PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    wrapped bytea,
    master text,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    forgotten_at timestamptz,
    CHECK ((wrapped IS NULL) = (forgotten_at IS NOT NULL) AND (wrapped IS NULL) = (master IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1);

-- The key of a subject: the one that it has, or else this new one.
CREATE FUNCTION :schema.subject_key(of_subject text, new_id uuid, new_wrapped bytea, new_master text)
RETURNS TABLE (id uuid, wrapped bytea, master text) LANGUAGE sql AS $$
    INSERT INTO :schema.subject_keys (subject, id, wrapped, master)
    VALUES (of_subject, new_id, new_wrapped, new_master) ON CONFLICT (subject) DO NOTHING;
    SELECT k.id, k.wrapped, k.master FROM :schema.subject_keys k WHERE k.subject = of_subject
$$;

-- As in 0003, and subjects: a job that can still fire has a subject that is not forgotten, and whoever
-- is forgotten loses the key with the event that says so. The log lock keeps the two apart.
CREATE OR REPLACE FUNCTION :schema.append_cold(cold jsonb, verdicts smallint[], stamp timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    gone text;
    keys text;
BEGIN
    IF cold ? 'subjects' THEN
        SELECT n.subject INTO gone
        FROM jsonb_to_recordset(cold -> 'subjects') AS n (of integer, subject text)
        WHERE verdicts[n.of] = 0
          AND NOT EXISTS (SELECT FROM :schema.subject_keys k
                          WHERE k.subject = n.subject AND k.wrapped IS NOT NULL)
        LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION '%', gone USING ERRCODE = 'HR002';
        END IF;
    END IF;
    IF cold ? 'forgotten' THEN
        WITH lost AS (
            INSERT INTO :schema.subject_keys AS k (subject, id, made_at, forgotten_at)
            SELECT n.subject, gen_random_uuid(), stamp, stamp
            FROM jsonb_to_recordset(cold -> 'forgotten') AS n (of integer, subject text)
            WHERE verdicts[n.of] = 0
            ON CONFLICT (subject) DO UPDATE SET wrapped = NULL, master = NULL, forgotten_at = stamp
            RETURNING k.id
        )
        SELECT string_agg(l.id::text, ' ') INTO keys FROM lost l;
        IF keys IS NOT NULL THEN
            PERFORM pg_notify(:literal || '_forgotten', keys);
        END IF;
    END IF;
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

-- What a service needs, and the keys of subjects.
ALTER FUNCTION :schema.grant_service(name) RENAME TO grant_service_before_subjects;
CREATE FUNCTION :schema.grant_service(role name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM :schema.grant_service_before_subjects(role);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON %I.subject_keys TO %I', :literal, role);
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
