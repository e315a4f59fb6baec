-- The inline read models: written in the transaction of the events, rebuilt from them at any time.

-- What needs attention, and when. Looks (a claim's window, an attempt's lease) have an index of
-- their own, so that a flood of unfinished occurrences does not stand between a sweep and its fires.
CREATE TABLE :schema.next_runs (
    due_at timestamptz NOT NULL,
    fire_time timestamptz NOT NULL,
    position bigint NOT NULL,
    id uuid PRIMARY KEY,
    job_id uuid NOT NULL,
    version integer NOT NULL,
    attempt integer NOT NULL,
    failures integer NOT NULL,
    fires integer NOT NULL,
    partition smallint NOT NULL,
    look boolean NOT NULL,
    state text NOT NULL,
    kind text NOT NULL,
    lane text
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX next_runs_fires ON :schema.next_runs (partition, due_at, id)
    WHERE NOT look AND lane IS NULL;
CREATE INDEX next_runs_looks ON :schema.next_runs (partition, due_at, id) WHERE look;
-- Fires that wait for a slot of a full lane, out of the way of the others.
CREATE INDEX next_runs_lanes ON :schema.next_runs (lane, due_at, id) WHERE lane IS NOT NULL;
CREATE INDEX next_runs_unfinished ON :schema.next_runs (job_id) WHERE kind <> 'job';

-- Current definitions. held_fire and fires are where the schedule of a job stands that has no row in
-- next_runs: a paused one goes on from there. tenant is with whom it takes its turn among others: the
-- jobs of its concurrency key, or else those of its handler.
CREATE TABLE :schema.jobs (
    id uuid PRIMARY KEY,
    key text UNIQUE,
    version integer NOT NULL,
    status text NOT NULL,
    partition smallint NOT NULL,
    name text NOT NULL,
    queue text NOT NULL,
    owner text,
    labels jsonb NOT NULL,
    definition json NOT NULL,
    tenant text NOT NULL GENERATED ALWAYS AS
        (coalesce('k' || (definition ->> 'concurrency_key'), 'n' || name)) STORED,
    priority smallint NOT NULL GENERATED ALWAYS AS
        (coalesce((definition ->> 'priority')::smallint, 0::smallint)) STORED,
    held_fire timestamptz,
    fires integer NOT NULL,
    registered_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL
) WITH (fillfactor = 90);
CREATE INDEX jobs_name ON :schema.jobs (name, id);
CREATE INDEX jobs_labels ON :schema.jobs USING gin (labels) WHERE labels <> '{}';

-- The execution log: finished occurrences; unfinished ones are in next_runs.
CREATE TABLE :schema.executions (
    finished_at timestamptz NOT NULL,
    fire_time timestamptz NOT NULL,
    id uuid NOT NULL PRIMARY KEY,
    job_id uuid NOT NULL,
    version integer NOT NULL,
    attempt integer NOT NULL,
    failures integer NOT NULL,
    partition smallint NOT NULL,
    state text NOT NULL,
    kind text NOT NULL
) PARTITION BY RANGE (id);
CREATE INDEX executions_job ON :schema.executions (job_id, id);
-- What did not simply succeed, in the order of time; costs nothing where all is well.
CREATE INDEX executions_unusual ON :schema.executions (state, id) WHERE state <> 'succeeded';
-- What took long to end, found by any instant within: with the runs of the minutes before an instant,
-- all that was unfinished then. Costs nothing where all is quick.
CREATE INDEX executions_long ON :schema.executions USING gist (tstzrange(fire_time, finished_at, '[]'))
    WHERE finished_at - fire_time > interval '10 minutes';
CREATE TABLE :schema.executions_rest PARTITION OF :schema.executions DEFAULT;

CREATE TABLE :schema.dead_letters (
    id uuid PRIMARY KEY,
    job_id uuid NOT NULL,
    name text NOT NULL,
    owner text,
    cause text NOT NULL,
    kind text,
    error text NOT NULL,
    attempt integer NOT NULL,
    fire_time timestamptz NOT NULL,
    since timestamptz NOT NULL
);
CREATE INDEX dead_letters_owner ON :schema.dead_letters (owner, id);

-- Who leads each partition. token is the version of the Elected event, null while nobody leads.
-- published is the log position up to which the partition's claims are known to be in the queue.
CREATE TABLE :schema.partitions (
    partition smallint PRIMARY KEY,
    stream uuid NOT NULL,
    version integer NOT NULL DEFAULT 0,
    instance text,
    token integer,
    lease_until timestamptz NOT NULL DEFAULT '-infinity',
    published bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);

-- Not a read model but the living: which processes there are. Lost without harm.
CREATE UNLOGGED TABLE :schema.instances (
    instance text PRIMARY KEY,
    role text NOT NULL,
    started_at timestamptz NOT NULL,
    seen_until timestamptz NOT NULL,
    details jsonb NOT NULL DEFAULT '{}'
);

-- Things that were refused or repeated, for doctor and metrics.
CREATE TABLE :schema.counters (name text PRIMARY KEY, value bigint NOT NULL);

-- How far each follower of the log has come, exactly once with its own writes.
CREATE TABLE :schema.tracking (
    follower text PRIMARY KEY,
    position bigint NOT NULL,
    moved_at timestamptz NOT NULL DEFAULT now()
);

-- Moves a follower on, in the transaction of what it wrote; raises where it has been there already,
-- so that a second process, or a repetition, takes its writes back.
CREATE FUNCTION :schema.track(name text, reached bigint) RETURNS bigint
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moved bigint;
BEGIN
    INSERT INTO :schema.tracking AS t (follower, position) VALUES (name, reached)
    ON CONFLICT (follower) DO UPDATE SET position = excluded.position, moved_at = now()
    WHERE t.position < excluded.position
    RETURNING t.position INTO moved;
    IF moved IS NULL THEN
        RAISE EXCEPTION 'follower % has been at position % already', name, reached
            USING ERRCODE = 'unique_violation';
    END IF;
    RETURN moved;
END $$;

-- Creates the month's partitions of the two big tables for the months around now. The bounds are
-- ids, which begin with 48 bits of fire time. A month for which the rest already holds rows stays
-- there. Many processes may call it at once: one of them does it. It needs both tables for
-- itself for some milliseconds and does not wait long for them: who calls it tries again. With the
-- owner's rights, because scanners, which keep the months ahead, may not create tables.
CREATE FUNCTION :schema.create_month_partitions(behind integer, ahead integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '40ms' AS $$
DECLARE
    parent text;
    first_of_month timestamptz;
    low uuid;
    high uuid;
    child text;
    occupied boolean;
    created integer := 0;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended(:literal || '/partitions', 0)) THEN
        RETURN 0;
    END IF;
    FOR offset_months IN -behind .. ahead LOOP
        first_of_month := date_trunc('month', now(), 'UTC') + make_interval(months => offset_months);
        low := :schema.time_floor(first_of_month);
        high := :schema.time_floor(first_of_month + interval '1 month');
        FOREACH parent IN ARRAY ARRAY['occurrence_events', 'executions'] LOOP
            child := parent || '_' || to_char(first_of_month AT TIME ZONE 'UTC', 'YYYY_MM');
            CONTINUE WHEN to_regclass(format('%I.%I', :literal, child)) IS NOT NULL;
            EXECUTE format('SELECT EXISTS (SELECT FROM %I.%I WHERE %I >= $1 AND %I < $2)',
                           :literal, parent || '_rest',
                           CASE parent WHEN 'executions' THEN 'id' ELSE 'stream' END,
                           CASE parent WHEN 'executions' THEN 'id' ELSE 'stream' END)
                INTO occupied USING low, high;
            CONTINUE WHEN occupied;
            EXECUTE format('CREATE TABLE %I.%I PARTITION OF %I.%I FOR VALUES FROM (%L) TO (%L)',
                           :literal, child, :literal, parent, low, high);
            IF parent = 'occurrence_events' THEN
                EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I.%I '
                               'FOR EACH STATEMENT EXECUTE FUNCTION %I.refuse_change()',
                               :literal, child, :literal);
            END IF;
            created := created + 1;
        END LOOP;
    END LOOP;
    RETURN created;
END $$;

CREATE FUNCTION :schema.time_floor(moment timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM moment) * 1000)::bigint), 12, '0')
            || '00000000000000000000')::uuid
$$;

SELECT :schema.create_month_partitions(1, 3);
