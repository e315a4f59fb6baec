-- The log: every event, in one total order, in two tables so that old occurrences can leave by
-- whole partitions while the definitions of jobs stay. :schema stands for the namespace's schema.

CREATE SEQUENCE :schema.positions;

-- Fixed when the namespace is created: changing the number of partitions would move jobs between
-- leaders, and a job must always have one.
CREATE TABLE :schema.namespace (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    name text NOT NULL,
    partitions smallint NOT NULL CHECK (partitions BETWEEN 1 AND 1024),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Streams of jobs and of partitions.
CREATE TABLE :schema.job_events (
    position bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    stream uuid NOT NULL,
    version integer NOT NULL,
    topic text NOT NULL,
    state bytea NOT NULL,
    PRIMARY KEY (stream, version)
);
CREATE UNIQUE INDEX job_events_position ON :schema.job_events (position);
CREATE INDEX job_events_recorded_at ON :schema.job_events USING brin (recorded_at);

-- Streams of occurrences, whose ids begin with their fire time.
CREATE TABLE :schema.occurrence_events (
    position bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    stream uuid NOT NULL,
    version integer NOT NULL,
    topic text NOT NULL,
    state bytea NOT NULL,
    PRIMARY KEY (stream, version)
) PARTITION BY RANGE (stream);
CREATE INDEX occurrence_events_position ON :schema.occurrence_events (position);
-- The few events that say what may have happened unseen, or what a person ordered: looked up for every
-- claim after the first. Costs nothing where nothing is lost, cancelled or replayed.
CREATE INDEX occurrence_events_fates ON :schema.occurrence_events (stream, version, topic)
    WHERE topic IN ('occurrence.lost.1', 'occurrence.replayed.1', 'occurrence.cancel_requested.1');
CREATE TABLE :schema.occurrence_events_rest PARTITION OF :schema.occurrence_events DEFAULT;

-- The hash chain: a link for each append, so that an event that was changed, taken away or put in later
-- is found (`horolog verify --chain`), also by those who may do anything to these tables: they would
-- have to recompute every link since, and a checkpoint kept elsewhere tells.
--   content   sha256 over the events of the append, in their order
--   digest    sha256 over the digest of the link before, position_from, position_to, events, content
CREATE TABLE :schema.chain (
    position_to bigint PRIMARY KEY,
    position_from bigint NOT NULL,
    events integer NOT NULL,
    content bytea NOT NULL,
    digest bytea NOT NULL
);
-- What each pruning has left of the content of links that it took events from. The sha256 of all of it
-- is in the event that says so, and that event is in the chain; "pruning" is its correlation.
CREATE TABLE :schema.chain_pruned (
    pruning uuid NOT NULL,
    position_to bigint NOT NULL,
    events integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (pruning, position_to)
);
CREATE INDEX chain_pruned_position ON :schema.chain_pruned (position_to, events);

-- Append-only for everybody, owners and superusers included; what services may not do at all is
-- withheld by privileges on top (see grant_service). Retention drops partitions and deletes nothing.
CREATE FUNCTION :schema.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log is append-only: % of %.% is refused', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege',
              HINT = 'what an event says is corrected by a further event';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON :schema.job_events
    FOR EACH ROW EXECUTE FUNCTION :schema.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON :schema.occurrence_events
    FOR EACH ROW EXECUTE FUNCTION :schema.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON :schema.chain
    FOR EACH ROW EXECUTE FUNCTION :schema.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON :schema.chain
    FOR EACH STATEMENT EXECUTE FUNCTION :schema.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON :schema.job_events
    FOR EACH STATEMENT EXECUTE FUNCTION :schema.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON :schema.occurrence_events
    FOR EACH STATEMENT EXECUTE FUNCTION :schema.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON :schema.occurrence_events_rest
    FOR EACH STATEMENT EXECUTE FUNCTION :schema.refuse_change();

-- The decoded log, for psql and BI tools: who did what, when, why. A state that is not JSON (an
-- encrypted one, a foreign one) shows as null and does not stop the query.
CREATE FUNCTION :schema.decoded(state bytea) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN convert_from(state, 'UTF8')::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

-- A trigger's request id makes it repeatable: what it ordered the first time is found by it.
CREATE INDEX job_events_requests ON :schema.job_events
    (stream, (:schema.decoded(state) ->> 'request_id')) WHERE topic = 'job.triggered.1';
-- Paused and cancelled jobs are found among all others by these events: an index of the jobs' status
-- would make the end of every one-off touch all indexes of its row.
CREATE INDEX job_events_stopped ON :schema.job_events (topic, stream)
    WHERE topic IN ('job.paused.1', 'job.cancelled.1');

-- An ordered run has no event of its own before its claim: what ordered it is found by its id, and,
-- ids being ordered by time, what was ordered for later than some instant.
CREATE INDEX job_events_ordered ON :schema.job_events
    ((:schema.decoded(state) ->> 'occurrence_id') COLLATE "C", position)
    WHERE topic = 'job.triggered.1';

-- What did not run is asked for by fire time: the fire times of a dropped range, and a key that sorts
-- ranges by their last one, among the ids of occurrences, which begin with their fire times.
CREATE FUNCTION :schema.skipped_fires(state bytea) RETURNS tstzrange
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    said jsonb := :schema.decoded(state);
BEGIN
    RETURN tstzrange((said ->> 'first')::timestamptz, (said ->> 'last')::timestamptz, '[]');
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;
CREATE FUNCTION :schema.skip_key(state bytea, "position" bigint) RETURNS uuid
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM upper(:schema.skipped_fires(state))) * 1000)::bigint),
                 12, '0') || lpad(to_hex("position"), 20, '0'))::uuid
$$;
CREATE INDEX job_events_skips ON :schema.job_events (:schema.skip_key(state, position))
    WHERE topic = 'job.fires_skipped.1';
CREATE INDEX job_events_skipped_fires ON :schema.job_events USING gist (:schema.skipped_fires(state))
    WHERE topic = 'job.fires_skipped.1';

CREATE VIEW :schema.log AS
SELECT e.position, e.recorded_at, e.stream, e.version, e.topic,
       d.state ->> 'actor' AS actor,
       d.state ->> 'reason' AS reason,
       coalesce((d.state ->> 'correlation')::uuid, e.stream) AS correlation,
       coalesce(d.state ->> 'causation',
                CASE WHEN e.version > 1 THEN e.stream || ':' || e.version - 1 END) AS causation,
       d.state - '{actor,reason,correlation,causation}'::text[] AS state
FROM (SELECT position, recorded_at, stream, version, topic, state FROM :schema.job_events
      UNION ALL
      SELECT position, recorded_at, stream, version, topic, state FROM :schema.occurrence_events) e
CROSS JOIN LATERAL (SELECT :schema.decoded(e.state) AS state) d;

COMMENT ON VIEW :schema.log IS
    'Every event, decoded: position is the total order, recorded_at the database''s clock.';
