-- Lanes: limits of how many run at once and of how many begin a second, per concurrency key, per job
-- and per queue. All claims pass through append under the log lock, so what is counted here is exact
-- however many scanners there are.
--
-- What finds its lane full is refused and, in the same transaction, waits in the lane: its row leaves
-- the fires of the index, so that a sweep does not read it again and again. Whatever gives a slot back
-- looks, under the same lock, whether somebody waits, and tells the leaders. So no slot is free while a
-- row waits and nobody was told; and where the news is lost, the leaders look all the same, later.

-- The slots that are taken: by a claim, until its attempt has ended.
CREATE TABLE :schema.lane_slots (
    id uuid NOT NULL,
    lane text NOT NULL,
    PRIMARY KEY (id, lane)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX lane_slots_lane ON :schema.lane_slots (lane);

-- Rates. A bucket that has been drawn from is full again at full_at; each claim puts that off by
-- 1 / rate. One that is full is the same as none, and is forgotten.
CREATE TABLE :schema.lane_buckets (
    lane text PRIMARY KEY,
    full_at timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX lane_buckets_full_at ON :schema.lane_buckets (full_at);

-- Has a row from the first claim in any lane on.
CREATE TABLE :schema.lanes_in_use (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row));

-- What was set for queues; without a row a queue has no limit.
CREATE TABLE :schema.queue_limits (
    queue text PRIMARY KEY,
    most integer CHECK (most >= 1),
    rate float8 CHECK (rate > 0),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text NOT NULL
);

-- Verdicts with 3 for what finds a lane full. Decisions are served in their order; one that needs
-- slots in two lanes passes the first before it is counted in the second. Fewer than possible may
-- pass where a decision fails in its second lane; never more.
CREATE FUNCTION :schema.lanes_full(
    lanes jsonb, verdicts smallint[], guard_id uuid[], stamp timestamptz
) RETURNS smallint[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    answer smallint[] := verdicts;
    items integer[];
    names text[];
BEGIN
    FOR this_turn IN 0 .. 1 LOOP
        WITH wanted AS MATERIALIZED (
            SELECT n.of, n.name, n.limit, n.rate,
                   sum(n.claims) OVER (PARTITION BY n.name ORDER BY n.of) AS upto
            FROM jsonb_to_recordset(lanes) AS n (of integer, turn integer, name text,
                 "limit" integer, rate float8, claims integer)
            WHERE n.turn = this_turn AND answer[n.of] = 0
        ), known AS MATERIALIZED (
            SELECT w.name, b.full_at,
                   (SELECT count(*) FROM :schema.lane_slots s WHERE s.lane = w.name) AS taken
            FROM (SELECT DISTINCT name FROM wanted) w
            LEFT JOIN :schema.lane_buckets b ON b.lane = w.name
        )
        SELECT array_agg(w.of), array_agg(w.name) INTO items, names
        FROM wanted w JOIN known k ON k.name = w.name
        WHERE k.taken + w.upto > w.limit
           OR w.upto > floor(1e-6 + greatest(1, w.rate)
                             - w.rate * greatest(0, extract(epoch FROM k.full_at - stamp)));
        CONTINUE WHEN items IS NULL;
        FOR i IN 1 .. cardinality(items) LOOP
            answer[items[i]] := 3;
        END LOOP;
        UPDATE :schema.next_runs r SET lane = n.name
        FROM unnest(items, names) AS n (item, name)
        WHERE r.id = guard_id[n.item] AND NOT r.look AND r.lane IS DISTINCT FROM n.name;
    END LOOP;
    RETURN answer;
END $$;

-- The slots of the claims that were accepted, and what they took of the rates.
CREATE FUNCTION :schema.take_slots(
    lanes jsonb, verdicts smallint[], put_of integer[], put_id uuid[], put_look boolean[],
    stamp timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO :schema.lanes_in_use DEFAULT VALUES ON CONFLICT DO NOTHING;
    INSERT INTO :schema.lane_slots (id, lane)
    SELECT p.id, n.name
    FROM jsonb_to_recordset(lanes) AS n (of integer, name text, "limit" integer)
    JOIN unnest(put_of, put_id, put_look) AS p (item, id, look) ON p.item = n.of AND p.look
    WHERE n.limit IS NOT NULL AND verdicts[n.of] = 0
    ON CONFLICT DO NOTHING;

    INSERT INTO :schema.lane_buckets AS b (lane, full_at)
    SELECT n.name, stamp + make_interval(secs => sum(n.claims / n.rate))
    FROM jsonb_to_recordset(lanes) AS n (of integer, name text, rate float8, claims integer)
    WHERE n.rate IS NOT NULL AND verdicts[n.of] = 0
    GROUP BY n.name
    ON CONFLICT (lane) DO UPDATE
        SET full_at = greatest(b.full_at, stamp) + (excluded.full_at - stamp);
    DELETE FROM :schema.lane_buckets b WHERE b.lane IN (
        SELECT f.lane FROM :schema.lane_buckets f WHERE f.full_at < stamp
        ORDER BY f.full_at LIMIT 100);
END $$;

-- The slots of attempts that have ended are free, and the leaders are told of lanes that are waited
-- for. Nobody looks here at what else a row may be: a job's own row never has a slot.
CREATE FUNCTION :schema.release_slots(
    verdicts smallint[], drop_of integer[], drop_id uuid[],
    put_of integer[], put_id uuid[], put_look boolean[]
) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    freed text;
BEGIN
    FOR freed IN
        WITH ended AS (
            SELECT d.id FROM unnest(drop_of, drop_id) AS d (item, id) WHERE verdicts[d.item] = 0
            UNION ALL
            SELECT p.id FROM unnest(put_of, put_id, put_look) AS p (item, id, look)
            WHERE NOT p.look AND verdicts[p.item] = 0
        ), gone AS (
            DELETE FROM :schema.lane_slots s USING ended e WHERE s.id = e.id RETURNING s.lane
        )
        SELECT g.lane FROM (SELECT DISTINCT lane FROM gone) g
        WHERE EXISTS (SELECT FROM :schema.next_runs r WHERE r.lane = g.lane)
    LOOP
        PERFORM :schema.tell_lane(freed);
    END LOOP;
END $$;

CREATE FUNCTION :schema.tell_lane(name text) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify(:literal || '_due', 'lane ' || to_json(name)::text)
$$;

-- The rows that are next in each lane, as many as it has slots free and tokens in its bucket, of the
-- partitions given. A lane is served in the order of due times over all partitions: rows of others
-- that come first are left to their leaders, up to a bound, so that a leader that has stopped does
-- not stop the lane. A lane without a row in the answer is one in which nobody waits any more; a row
-- without an id says that somebody does, and that none of these partitions' is next.
CREATE FUNCTION :schema.lane_waits(
    names text[], limits integer[], rates float8[], most integer[], of_partition smallint[]
) RETURNS TABLE (lane_number integer, free integer, due_us bigint, id uuid, partition smallint)
    LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT w.n::integer, w.free, (extract(epoch FROM r.due_at) * 1000000)::bigint, r.id, r.partition
    FROM (
        SELECT l.n, l.name,
               greatest(0, least(
                   l.most,
                   c.most - (SELECT count(*) FROM :schema.lane_slots s WHERE s.lane = l.name),
                   floor(1e-6 + greatest(1, c.rate) - c.rate * greatest(0, coalesce(
                       (SELECT extract(epoch FROM b.full_at - clock_timestamp())
                        FROM :schema.lane_buckets b WHERE b.lane = l.name), 0)))
               ))::integer AS free
        FROM unnest(names, limits, rates, most) WITH ORDINALITY AS l (name, taken, rate, most, n)
        -- What was set for a queue is known here, whatever the leader remembers of it.
        LEFT JOIN :schema.queue_limits q ON l.name = 'queue:' || q.queue
        CROSS JOIN LATERAL (
            SELECT CASE WHEN starts_with(l.name, 'queue:') THEN q.most ELSE l.taken END AS most,
                   CASE WHEN starts_with(l.name, 'queue:') THEN q.rate ELSE l.rate END AS rate) c
        WHERE EXISTS (SELECT FROM :schema.next_runs x WHERE x.lane = l.name)
    ) w
    LEFT JOIN LATERAL (
        SELECT first.due_at, first.id, first.partition
        FROM (SELECT x.due_at, x.id, x.partition FROM :schema.next_runs x
              WHERE x.lane = w.name ORDER BY x.due_at, x.id LIMIT w.free + 200) first
        WHERE first.partition = ANY (of_partition)
        ORDER BY first.due_at, first.id LIMIT w.free
    ) r ON true;
END $$;

-- A page of the lanes in which somebody waits, in the order of their names, each with the partition
-- of the row that is next: the index is skipped through, whatever the number of rows.
CREATE FUNCTION :schema.waiting_lanes(after text, most integer)
    RETURNS TABLE (name text, partition smallint)
    LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE found AS (
        (SELECT x.lane, x.partition, 1 AS n FROM :schema.next_runs x
         WHERE x.lane > after ORDER BY x.lane, x.due_at, x.id LIMIT 1)
        UNION ALL
        SELECT next.lane, next.partition, f.n + 1
        FROM found f CROSS JOIN LATERAL (
            SELECT x.lane, x.partition FROM :schema.next_runs x
            WHERE x.lane > f.lane ORDER BY x.lane, x.due_at, x.id LIMIT 1) next
        WHERE f.n < most
    )
    SELECT f.lane, f.partition FROM found f;
END $$;

-- Limits a queue, or (with neither) takes its limits away. What is claimed or runs takes its slots
-- now; claims that were read before and are appended after it escape it. What waits is told of it.
CREATE FUNCTION :schema.limit_queue(of_queue text, new_most integer, new_rate float8, who text)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(:literal || '/log', 0));
    DELETE FROM :schema.lane_slots s WHERE s.lane = 'queue:' || of_queue;
    IF new_most IS NOT NULL THEN
        INSERT INTO :schema.lane_slots (id, lane)
        SELECT r.id, 'queue:' || of_queue
        FROM :schema.next_runs r JOIN :schema.jobs j ON j.id = r.job_id
        WHERE r.look AND r.kind <> 'job' AND j.queue = of_queue;
        INSERT INTO :schema.lanes_in_use DEFAULT VALUES ON CONFLICT DO NOTHING;
    END IF;
    IF new_most IS NULL AND new_rate IS NULL THEN
        DELETE FROM :schema.queue_limits q WHERE q.queue = of_queue;
    ELSE
        INSERT INTO :schema.queue_limits AS q (queue, most, rate, changed_by)
        VALUES (of_queue, new_most, new_rate, who)
        ON CONFLICT (queue) DO UPDATE
            SET most = excluded.most, rate = excluded.rate, changed_at = clock_timestamp(),
                changed_by = excluded.changed_by;
    END IF;
    PERFORM :schema.tell_lane('queue:' || of_queue);
END $$;

-- The slots of everything that is claimed or runs, made anew from the index and the definitions: after
-- a rebuild. Called under the log lock.
CREATE FUNCTION :schema.recount_slots() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    counted bigint;
BEGIN
    DELETE FROM :schema.lane_slots;
    INSERT INTO :schema.lane_slots (id, lane)
    SELECT r.id, lanes.name
    FROM :schema.next_runs r
    JOIN :schema.jobs j ON j.id = r.job_id
    LEFT JOIN :schema.queue_limits q ON q.queue = j.queue
    CROSS JOIN LATERAL (
        SELECT coalesce('key:' || (j.definition ->> 'concurrency_key'), 'job:' || j.id) AS name
        WHERE j.definition ->> 'concurrency_limit' IS NOT NULL
        UNION ALL
        SELECT 'queue:' || j.queue WHERE q.most IS NOT NULL
    ) lanes
    WHERE r.look AND r.kind <> 'job';
    GET DIAGNOSTICS counted = ROW_COUNT;
    INSERT INTO :schema.lanes_in_use SELECT true WHERE counted > 0 ON CONFLICT DO NOTHING;
    RETURN counted;
END $$;
