-- horolog: admits 8
-- What a login of one kind could still do through append, though its topics were looked at (0017):
-- a worker could end a run that nobody had claimed, take a job's own row away under the name of a run,
-- or write a number into the index that stops whoever reads it; a client could put an event of a job
-- into the stream of a partition, which nobody could then lead again, or an event of a run before its
-- claim, and change the rows of other jobs than its events are about.
--
-- So a worker's decision rests on a row of the index that is claimed (for an attempt) or runs (for an
-- outcome), is about that run alone, and says of it what the row says. A client's events follow on one
-- of their kind in their stream, and its rows are those of the jobs and runs that they are about.

-- A worker's decisions (of_worker, by their number) in the same terms as append: null, or what is wrong
-- with one of them. A row that has moved on meanwhile is not looked at: append refuses that decision by
-- its guard. Each look-up is by the number of the decision, a primary key or a hash: batches are long.
CREATE FUNCTION :schema.odd_of_worker(
    guard_of smallint[], guard_id uuid[], guard_version integer[], guard_attempt integer[],
    event_of integer[], event_stream uuid[], event_version integer[], event_topic text[],
    event_state bytea[],
    put_of integer[], put_id uuid[], put_look boolean[], put_state text[], put_version integer[],
    put_fire timestamptz[], put_attempt integer[], put_failures integer[], put_fires integer[],
    drop_of integer[], drop_id uuid[],
    end_of integer[], end_id uuid[], end_job uuid[], end_partition smallint[],
    end_fire timestamptz[], end_kind text[], end_version integer[], end_attempt integer[],
    cold jsonb, of_worker boolean[]
) RETURNS text LANGUAGE sql STABLE AS $$
    WITH said AS MATERIALIZED (
        SELECT e.*, row_number() OVER (PARTITION BY e.item ORDER BY e.n) AS place
        FROM unnest(event_of, event_stream, event_version, event_topic, event_state)
             WITH ORDINALITY AS e (item, stream, version, topic, state, n)
        WHERE of_worker[e.item]
    ), ends_at AS MATERIALIZED (
        SELECT s.item, max(s.version) AS version FROM said s GROUP BY s.item
    )
    SELECT odd.what FROM (
        SELECT s.topic || ' of a run that is not in such a state' AS what
        FROM said s
        WHERE NOT coalesce(
            s.stream = guard_id[s.item] AND s.version = guard_version[s.item] + s.place
            AND CASE
                WHEN s.place > 1 THEN s.topic IN
                    ('occurrence.dead_lettered.1', 'occurrence.skipped.1', 'occurrence.stopped.1')
                WHEN s.topic IN ('occurrence.attempted.1', 'occurrence.dead_lettered.1')
                    THEN guard_of[s.item] = 5
                ELSE guard_of[s.item] IN (6, 8) AND s.topic <> 'occurrence.skipped.1' END
            AND (s.topic NOT IN ('occurrence.attempted.1', 'occurrence.succeeded.1',
                                 'occurrence.failed.1', 'occurrence.snoozed.1', 'occurrence.stopped.1')
                 OR convert_from(s.state, 'UTF8')::json ->> 'attempt' = guard_attempt[s.item]::text),
            false)
        UNION ALL
        SELECT 'a row that says something else than the run''s'
        FROM (
            SELECT p.*, (SELECT r FROM :schema.next_runs r
                         WHERE r.id = p.id AND r.version = guard_version[p.item]) AS now
            FROM unnest(put_of, put_id, put_look, put_state, put_version, put_fire, put_attempt,
                        put_failures, put_fires)
                 AS p (item, id, look, state, version, fire, attempt, failures, fires)
            WHERE of_worker[p.item]
        ) p
        WHERE NOT coalesce(
            p.id = guard_id[p.item] AND (p.item, p.version) IN (SELECT e.item, e.version FROM ends_at e)
            AND p.attempt = guard_attempt[p.item]
            AND p.state IN ('running', 'retrying', 'stopping') AND p.look = (p.state <> 'retrying')
            AND ((p.now).id IS NULL
                 OR p.fire = (p.now).fire_time AND p.fires = (p.now).fires
                    AND p.failures BETWEEN (p.now).failures AND (p.now).failures + 1), false)
        UNION ALL
        SELECT 'a row of another run'
        FROM unnest(drop_of, drop_id) AS d (item, id)
        WHERE of_worker[d.item] AND d.id IS DISTINCT FROM guard_id[d.item]
        UNION ALL
        SELECT 'an end that is not the run''s'
        FROM (
            SELECT x.*, (SELECT r FROM :schema.next_runs r
                         WHERE r.id = x.id AND r.version = guard_version[x.item]) AS now
            FROM unnest(end_of, end_id, end_job, end_partition, end_fire, end_kind, end_version,
                        end_attempt)
                 AS x (item, id, job, partition, fire, kind, version, attempt)
            WHERE of_worker[x.item]
        ) x
        WHERE NOT coalesce(
            x.id = guard_id[x.item] AND (x.item, x.version) IN (SELECT e.item, e.version FROM ends_at e)
            AND x.attempt = guard_attempt[x.item]
            AND ((x.now).id IS NULL
                 OR x.job = (x.now).job_id AND x.partition = (x.now).partition
                    AND x.fire = (x.now).fire_time AND x.kind = (x.now).kind), false)
        UNION ALL
        SELECT 'a dead letter of another run'
        FROM jsonb_each(cold) AS c (name, rows)
        CROSS JOIN LATERAL jsonb_array_elements(c.rows) AS n (row)
        WHERE of_worker[(n.row ->> 'of')::integer]
          AND NOT coalesce(c.name = 'dead_letters'
                           AND n.row ->> 'id' = guard_id[(n.row ->> 'of')::integer]::text, false)
    ) odd LIMIT 1
$$;

-- The same for a client's decisions: all that are not of_worker.
CREATE FUNCTION :schema.odd_of_client(
    event_of integer[], event_stream uuid[], event_version integer[], event_topic text[],
    event_is_occurrence boolean[],
    put_of integer[], put_id uuid[], put_job uuid[], drop_of integer[], drop_id uuid[],
    end_of integer[], end_id uuid[], move_of integer[], move_id uuid[], cold jsonb,
    of_worker boolean[]
) RETURNS text LANGUAGE sql STABLE AS $$
    WITH said AS MATERIALIZED (
        SELECT e.*, lag(e.version) OVER stream = e.version - 1
                    AND lag(e.family) OVER stream = e.family AS follows
        FROM (SELECT u.*, split_part(u.topic, '.', 1) AS family
              FROM unnest(event_of, event_stream, event_version, event_topic, event_is_occurrence)
                   AS u (item, stream, version, topic, is_occurrence)
              WHERE NOT of_worker[u.item]) e
        WINDOW stream AS (PARTITION BY e.stream ORDER BY e.version)
    ), of_rows AS (
        SELECT * FROM unnest(drop_of, drop_id) UNION ALL SELECT * FROM unnest(end_of, end_id)
        UNION ALL SELECT * FROM unnest(move_of, move_id)
        UNION ALL
        SELECT (n.row ->> 'of')::integer, (n.row ->> 'id')::uuid
        FROM jsonb_each(cold) AS c (name, rows)
        CROSS JOIN LATERAL jsonb_array_elements(c.rows) AS n (row)
        WHERE n.row ? 'id'
    )
    SELECT odd.what FROM (
        SELECT s.topic || ' where nothing of its kind goes before' AS what
        FROM said s
        WHERE s.follows IS NOT TRUE AND NOT CASE WHEN s.is_occurrence THEN
                EXISTS (SELECT FROM :schema.occurrence_events o
                        WHERE o.stream = s.stream AND o.version = greatest(1, s.version - 1))
                OR s.version = 1 AND EXISTS (SELECT FROM :schema.next_runs r
                                             WHERE r.id = s.stream AND r.kind <> 'job')
            ELSE
                EXISTS (SELECT FROM :schema.job_events j
                        WHERE j.stream = s.stream AND j.version = s.version - 1
                          AND split_part(j.topic, '.', 1) = s.family)
                OR s.version = 1 AND (s.family <> 'job' OR s.topic = 'job.registered.1')
                   AND NOT EXISTS (SELECT FROM :schema.partitions p WHERE p.stream = s.stream)
            END
        UNION ALL
        SELECT 'a row of another job'
        FROM unnest(put_of, put_id, put_job) AS p (item, id, job)
        WHERE NOT of_worker[p.item] AND NOT coalesce(
            ((p.item, p.id) IN (SELECT s.item, s.stream FROM said s)
             OR (p.item, p.job) IN (SELECT s.item, s.stream FROM said s))
            AND p.job = coalesce((SELECT r.job_id FROM :schema.next_runs r WHERE r.id = p.id), p.job),
            false)
        UNION ALL
        SELECT 'a row that its events are not about'
        FROM of_rows r (item, id)
        WHERE NOT of_worker[r.item]
          AND NOT coalesce((r.item, r.id) IN (SELECT s.item, s.stream FROM said s), false)
    ) odd LIMIT 1
$$;

-- As in 0017, and these two. Decisions with an event that only a worker has are a worker's.
DROP FUNCTION :schema.check_writer;
CREATE FUNCTION :schema.check_writer(
    guard_of smallint[], guard_id uuid[], guard_version integer[], guard_attempt integer[],
    event_of integer[], event_stream uuid[], event_version integer[], event_topic text[],
    event_state bytea[], event_is_occurrence boolean[],
    put_of integer[], put_id uuid[], put_job uuid[], put_look boolean[], put_state text[],
    put_version integer[], put_fire timestamptz[], put_attempt integer[], put_failures integer[],
    put_fires integer[],
    drop_of integer[], drop_id uuid[],
    end_of integer[], end_id uuid[], end_job uuid[], end_partition smallint[],
    end_fire timestamptz[], end_kind text[], end_state text[], end_version integer[],
    end_attempt integer[], move_of integer[], move_id uuid[], cold jsonb
) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    kinds text[];
    of_workers_alone text[];
    of_worker boolean[];
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
            FROM (SELECT item FROM unnest(put_of) AS r (item) UNION ALL
                  SELECT item FROM unnest(drop_of) AS r (item) UNION ALL
                  SELECT item FROM unnest(end_of) AS r (item) UNION ALL
                  SELECT item FROM unnest(move_of) AS r (item) UNION ALL
                  SELECT (n.row ->> 'of')::integer
                  FROM jsonb_each(cold) AS c (name, rows)
                  CROSS JOIN LATERAL jsonb_array_elements(c.rows) AS n (row)) AS r (item)
            WHERE NOT EXISTS (SELECT FROM unnest(event_of) AS e (item) WHERE e.item = r.item)
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
        IF odd IS NULL THEN
            of_workers_alone := ARRAY(SELECT m.topic FROM :schema.may_append m EXCEPT
                                      SELECT m.topic FROM :schema.may_append m WHERE m.kind = 'client');
            of_worker := ARRAY(
                SELECT NOT 'client' = ANY (kinds) OR coalesce(i.of_worker, false)
                FROM generate_series(1, cardinality(guard_of)) AS n (item)
                LEFT JOIN (SELECT e.item, bool_or(e.topic = ANY (of_workers_alone)) AS of_worker
                           FROM unnest(event_of, event_topic) AS e (item, topic) GROUP BY e.item) i
                  ON i.item = n.item
                ORDER BY n.item);
            odd := :schema.odd_of_worker(
                guard_of, guard_id, guard_version, guard_attempt, event_of, event_stream,
                event_version, event_topic, event_state, put_of, put_id, put_look, put_state,
                put_version, put_fire, put_attempt, put_failures, put_fires, drop_of, drop_id,
                end_of, end_id, end_job, end_partition, end_fire, end_kind, end_version, end_attempt,
                cold, of_worker);
            IF odd IS NULL AND 'client' = ANY (kinds) THEN
                odd := :schema.odd_of_client(
                    event_of, event_stream, event_version, event_topic, event_is_occurrence,
                    put_of, put_id, put_job, drop_of, drop_id, end_of, end_id, move_of, move_id,
                    cold, of_worker);
            END IF;
        END IF;
    END IF;
    IF odd IS NOT NULL THEN
        RAISE EXCEPTION '% may not append %', session_user, odd
            USING ERRCODE = 'insufficient_privilege',
                  DETAIL = format('It is of the kinds %s here.', kinds),
                  HINT = 'horolog roles says which login needs which role.';
    END IF;
END $$;

-- append calls it with more than it did, and is otherwise as it is.
DO $do$
DECLARE
    before text := pg_get_functiondef(format('%I.append', :literal)::regproc);
    after text := regexp_replace(before, '(PERFORM \S+\.check_writer)\([^)]*\)', '\1(
            guard_of, guard_id, guard_version, guard_attempt, event_of, event_stream, event_version,
            event_topic, event_state, event_is_occurrence, put_of, put_id, put_job, put_look,
            put_state, put_version, put_fire, put_attempt, put_failures, put_fires, drop_of, drop_id,
            end_of, end_id, end_job, end_partition, end_fire, end_kind, end_state, end_version,
            end_attempt, move_of, move_id, cold)');
BEGIN
    IF before = after THEN
        RAISE EXCEPTION 'append does not look at its writer as it did';
    END IF;
    EXECUTE after;
END $do$;

-- A rule of alerts may have a scanner run a command on its machine. Who may give commands to jobs may
-- not therefore run programs there: such a rule is set by the owner, or by a service that was trusted
-- with all (`migrate --grant-to`). One that is there already stays as it is.
CREATE FUNCTION :schema.check_alert_rule() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF jsonb_typeof(NEW.rule) <> 'object' OR EXISTS (
           SELECT FROM jsonb_each(NEW.rule) f
           WHERE jsonb_typeof(f.value) = 'object' OR jsonb_typeof(f.value) = 'array'
             AND f.value @? '$[*] ? (@.type() == "array" || @.type() == "object")') THEN
        RAISE EXCEPTION 'a rule of alerts is an object of plain values'
            USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.rule ? 'command' AND NOT has_table_privilege(
           session_user, format('%I.job_events', :literal), 'INSERT')
       AND (TG_OP = 'INSERT' OR NEW.rule -> 'command' IS DISTINCT FROM OLD.rule -> 'command'
            OR NEW.owner IS DISTINCT FROM OLD.owner) THEN
        RAISE EXCEPTION '% may not have scanners run a command', session_user
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'The owner of the schema sets rules with a command.';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER check_alert_rule BEFORE INSERT OR UPDATE ON :schema.alert_rules
    FOR EACH ROW EXECUTE FUNCTION :schema.check_alert_rule();

-- An instant that is none, put there by hand, would stop the sweep of everything. What was there before
-- is not looked at.
ALTER TABLE :schema.next_runs ADD CONSTRAINT next_runs_finite
    CHECK (isfinite(due_at) AND isfinite(fire_time)) NOT VALID;
-- (NaN, too, is more than all numbers.)
ALTER TABLE :schema.queue_limits ADD CONSTRAINT queue_limits_finite
    CHECK (rate < 'Infinity' AND rate >= 0.0001) NOT VALID;
ALTER TABLE :schema.jobs ADD CONSTRAINT jobs_finite CHECK (isfinite(held_fire)) NOT VALID;
