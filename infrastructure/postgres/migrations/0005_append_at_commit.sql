-- Appending at the commit of a handler's own transaction: the effect and the Succeeded event commit
-- together. Called in the middle of that transaction, append would hold the log lock until the
-- client sends its COMMIT, and everybody else would wait for that client's network and scheduling.
-- So the arguments are put down here, and a deferred trigger appends them when the COMMIT has
-- arrived: between taking the lock and giving it back there is the server alone.
--
-- A refused decision (SQLSTATE HR001) fails the commit, and with it the effect. Rows live within
-- their transaction only. The columns are the arguments of append, whatever they are.
DO $do$
DECLARE
    columns text;
    arguments text;
BEGIN
    SELECT string_agg(format('%I %s', a.name, format_type(a.type, NULL)), ', ' ORDER BY a.place),
           string_agg(format('NEW.%I', a.name), ', ' ORDER BY a.place)
    INTO columns, arguments
    FROM pg_proc p
    CROSS JOIN LATERAL unnest(p.proargnames[1:p.pronargs], p.proargtypes::oid[])
        WITH ORDINALITY AS a (name, type, place)
    WHERE p.pronamespace = :literal::regnamespace AND p.proname = 'append';

    EXECUTE format('CREATE UNLOGGED TABLE %I.at_commit (%s,'
                   ' id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)', :literal, columns);
    EXECUTE format($body$
        CREATE FUNCTION %1$I.append_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            answer smallint[];
        BEGIN
            DELETE FROM %1$I.at_commit c WHERE c.id = NEW.id;
            SELECT a.verdicts INTO answer FROM %1$I.append(%2$s) a;
            IF EXISTS (SELECT FROM unnest(answer) v WHERE v <> 0) THEN
                RAISE EXCEPTION 'the log refuses this outcome: the attempt was given up'
                    USING ERRCODE = 'HR001';
            END IF;
            RETURN NULL;
        END $$ $body$, :literal, arguments);
END $do$;

CREATE CONSTRAINT TRIGGER append AFTER INSERT ON :schema.at_commit
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION :schema.append_at_commit();
