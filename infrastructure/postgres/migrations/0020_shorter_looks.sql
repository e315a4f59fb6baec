-- horolog: admits 8
-- horolog: dispensable
-- horolog: online
-- The index of looks without the id. The claims of a batch have their look at one instant, so their
-- entries differ in nothing else: without it a leaf page holds an instant once, with the rows that have
-- it behind it, at some ten bytes for each claim and each attempt where it took sixty. looks_due reads
-- in the order of (due_at, id) all the same: it sorts the rows of one instant, which are one batch.
-- step
CREATE INDEX CONCURRENTLY IF NOT EXISTS next_runs_look_times
    ON :schema.next_runs (partition, due_at) WHERE look;
-- step
DROP INDEX CONCURRENTLY IF EXISTS :schema.next_runs_looks;
