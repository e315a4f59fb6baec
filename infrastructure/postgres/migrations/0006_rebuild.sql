-- Rebuilding read models from the log: a second set of their tables in a schema of its own, filled
-- while the first is in use, and exchanged with it in one transaction. The names stay what they are:
-- a table changes its schema, with its indexes, its partitions and the privileges on it.

-- What was rebuilt or verified, by whom, and how far it has come. "position": up to where the log is
-- folded into the tables of the other set; after the exchange, up to where they were kept.
CREATE TABLE :schema.rebuilds (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    purpose text NOT NULL,
    projections text[] NOT NULL,
    fold_version integer NOT NULL,
    state text NOT NULL,
    position bigint NOT NULL DEFAULT 0,
    events bigint NOT NULL DEFAULT 0,
    differences bigint,
    error text,
    actor text NOT NULL,
    reason text,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    moved_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A table and, where it is partitioned, its partitions.
CREATE FUNCTION :schema.table_tree(place text, name text) RETURNS TABLE (relation oid)
    LANGUAGE sql STABLE AS $$
    SELECT format('%I.%I', place, name)::regclass::oid
    UNION ALL
    SELECT i.inhrelid FROM pg_catalog.pg_inherits i
    WHERE i.inhparent = format('%I.%I', place, name)::regclass
$$;

-- An empty twin of a read model's table in the schema "other": columns, keys, storage, partitions,
-- owner and privileges; the other indexes are cheaper to make when it is full (see index_twin).
CREATE FUNCTION :schema.create_twin(other text, name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    live regclass := format('%I.%I', :literal, name)::regclass;
    form text;
    item record;
BEGIN
    SELECT CASE WHEN c.relkind = 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(c.oid) ELSE '' END
           || coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '')
    INTO form FROM pg_catalog.pg_class c WHERE c.oid = live;
    EXECUTE format('CREATE TABLE %I.%I (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS'
                   ' INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION INCLUDING COMMENTS)%s',
                   other, name, live, form);
    FOR item IN
        SELECT c.conname, pg_get_constraintdef(c.oid) AS definition
        FROM pg_catalog.pg_constraint c WHERE c.conrelid = live AND c.contype IN ('p', 'u')
    LOOP
        EXECUTE format('ALTER TABLE %I.%I ADD CONSTRAINT %I %s',
                       other, name, item.conname, item.definition);
    END LOOP;
    PERFORM :schema.complete_twin(other, name);
END $$;

-- The partitions that the twin lacks (a month may begin meanwhile), owners and privileges.
CREATE FUNCTION :schema.complete_twin(other text, name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    item record;
BEGIN
    FOR item IN
        SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bound,
               coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') AS form
        FROM :schema.table_tree(:literal, name) t JOIN pg_catalog.pg_class c ON c.oid = t.relation
        WHERE c.relispartition
          AND to_regclass(format('%I.%I', other, c.relname)) IS NULL
    LOOP
        EXECUTE format('CREATE TABLE %I.%I PARTITION OF %I.%I %s%s',
                       other, item.relname, other, name, item.bound, item.form);
    END LOOP;
    FOR item IN
        SELECT c.relname, pg_get_userbyid(c.relowner) AS owner
        FROM :schema.table_tree(:literal, name) t JOIN pg_catalog.pg_class c ON c.oid = t.relation
        WHERE pg_get_userbyid(c.relowner) <> current_user
    LOOP
        EXECUTE format('ALTER TABLE %I.%I OWNER TO %I', other, item.relname, item.owner);
    END LOOP;
    FOR item IN
        SELECT c.relname, a.privilege_type,
               CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
                   || CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS grantee
        FROM :schema.table_tree(:literal, name) t JOIN pg_catalog.pg_class c ON c.oid = t.relation
        CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT %s ON %I.%I TO %s',
                       item.privilege_type, other, item.relname, item.grantee);
    END LOOP;
END $$;

-- The indexes that the twin lacks, under the same names, and the planner's statistics.
CREATE FUNCTION :schema.index_twin(other text, name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    item record;
BEGIN
    FOR item IN
        SELECT i.relname, pg_get_indexdef(x.indexrelid) AS definition,
               x.indrelid::regclass::text AS live
        FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
        WHERE x.indrelid = format('%I.%I', :literal, name)::regclass
          AND to_regclass(format('%I.%I', other, i.relname)) IS NULL
    LOOP
        EXECUTE regexp_replace(item.definition, ' ON (ONLY )?\S+ USING ',
                               format(' ON %I.%I USING ', other, name));
    END LOOP;
    EXECUTE format('ANALYZE %I.%I', other, name);
END $$;

-- Exchanges tables with their twins; called under the log lock, with a short lock_timeout. What reads
-- or writes them waits for some milliseconds and goes on with the new ones; views, which follow a
-- table and not its name, are made again. Partitions stay where they are, so that this takes no longer
-- where there are many: they follow one by one (see settle_partition).
CREATE FUNCTION :schema.exchange_tables(other text, names text[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    third text := :literal || '$swap';
    name text;
    step record;
    views text[];
    view text;
BEGIN
    FOREACH name IN ARRAY names LOOP
        EXECUTE format('LOCK TABLE %I.%I IN ACCESS EXCLUSIVE MODE', :literal, name);
    END LOOP;
    SELECT array_agg(DISTINCT format('CREATE OR REPLACE VIEW %I.%I AS %s', n.nspname, v.relname,
                                     pg_get_viewdef(v.oid)))
    INTO views
    FROM unnest(names) AS t (name)
    JOIN pg_depend d ON d.refobjid = format('%I.%I', :literal, t.name)::regclass
                    AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite r ON r.oid = d.objid
    JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
    JOIN pg_namespace n ON n.oid = v.relnamespace;
    EXECUTE format('CREATE SCHEMA %I', third);
    FOR step IN
        SELECT * FROM (VALUES (:literal, third), (other, :literal), (third, other))
                      AS s (from_place, to_place)
    LOOP
        FOREACH name IN ARRAY names LOOP
            EXECUTE format('ALTER TABLE %I.%I SET SCHEMA %I', step.from_place, name, step.to_place);
        END LOOP;
    END LOOP;
    FOREACH view IN ARRAY coalesce(views, '{}') LOOP
        EXECUTE view;
    END LOOP;
    EXECUTE format('DROP SCHEMA %I', third);
END $$;

-- Brings one partition of an exchanged table to the schema of its parent, and the one whose name it
-- takes to the other; returns false where none is left. One call is one short transaction.
CREATE FUNCTION :schema.settle_partition(other text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    third text := :literal || '$swap';
    child name;
BEGIN
    SELECT c.relname INTO child
    FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
    WHERE p.relnamespace = :literal::regnamespace
      AND c.relnamespace = to_regnamespace(quote_ident(other))
      AND c.relkind = 'r'
    LIMIT 1;
    IF child IS NULL THEN
        RETURN false;
    END IF;
    IF to_regclass(format('%I.%I', :literal, child)) IS NOT NULL THEN
        EXECUTE format('CREATE SCHEMA %I', third);
        EXECUTE format('ALTER TABLE %I.%I SET SCHEMA %I', :literal, child, third);
    END IF;
    EXECUTE format('ALTER TABLE %I.%I SET SCHEMA %I', other, child, :literal);
    IF to_regclass(format('%I.%I', third, child)) IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %I.%I SET SCHEMA %I', third, child, other);
        EXECUTE format('DROP SCHEMA %I', third);
    END IF;
    RETURN true;
END $$;
