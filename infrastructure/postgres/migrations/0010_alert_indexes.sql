-- horolog: admits 8
-- horolog: dispensable
-- horolog: online
-- The indexes of alerts.
-- step
-- How old an owner's oldest dead letter is. (By owner and id there is an index for their pages.)
CREATE INDEX CONCURRENTLY IF NOT EXISTS dead_letters_age ON :schema.dead_letters (owner, since);
-- step
-- The few events of alerts among all others: the ends of their streams,
CREATE INDEX CONCURRENTLY IF NOT EXISTS job_events_alert_streams
    ON :schema.job_events (stream, version DESC) WHERE topic LIKE 'alert.%';
-- step
-- and their history in its order.
CREATE INDEX CONCURRENTLY IF NOT EXISTS job_events_alerts ON :schema.job_events (position)
    WHERE topic LIKE 'alert.%' OR topic LIKE 'alert\_rule.%';
