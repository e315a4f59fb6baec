-- horolog: admits 8
-- horolog: dispensable
-- horolog: online
-- The index of the jobs that carry a subject's data: to forget somebody, they are all found.
-- step
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_subject
    ON :schema.jobs ((definition ->> 'subject'), id) WHERE definition ->> 'subject' IS NOT NULL;
