-- horolog: admits 8
-- horolog: dispensable
-- A claim of a fire time rests on its job's row in the index, which has the job's version. One of a run
-- that was there before (a retry, a trigger, a replay) rests on the run's own row, so a change of the
-- job that came into the log between the scanner's look and its claim went unnoticed: the run began with
-- the payload as it had been, though whoever had changed it had been told. Now such a claim is refused,
-- alone, and decided anew. Runs of an earlier definition keep theirs. Asked of leaders only, who state their
-- fences: a log that is copied has claims as they were made.
CREATE FUNCTION :schema.claims_of_the_past(
    guard_due timestamptz[], event_of integer[], event_topic text[], event_state bytea[]
) RETURNS integer[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(c.item), '{}')
    FROM (
        SELECT e.item, convert_from(e.state, 'UTF8')::json AS said
        FROM unnest(event_of, event_topic, event_state) AS e (item, topic, state)
        JOIN unnest(guard_due) WITH ORDINALITY AS g (due, item) ON g.item = e.item
        WHERE e.topic = 'occurrence.claimed.1' AND g.due IS NULL
        OFFSET 0) c
    JOIN :schema.jobs j ON j.id = (c.said ->> 'job_id')::uuid
    WHERE c.said ->> 'definition_version' IS NULL
      AND j.version <> (c.said ->> 'job_version')::integer
$$;

DO $do$
DECLARE
    before text := pg_get_functiondef(format('%I.append', :literal)::regproc);
    after text := replace(before, '    verdicts := array_fill(0::smallint,', format(
        '    IF fence_instance IS NOT NULL AND array_position(guard_due, NULL) IS NOT NULL THEN
        refused := refused || %I.claims_of_the_past(guard_due, event_of, event_topic, event_state);
    END IF;

    verdicts := array_fill(0::smallint,', :literal));
BEGIN
    IF before = after THEN
        RAISE EXCEPTION 'append does not come to its verdicts as it did';
    END IF;
    EXECUTE after;
END $do$;
