-- horolog: admits 8
-- What scanners sign the messages of the ready queue with, so that a worker knows whose a payload is
-- without asking. Whoever reaches NATS alone does not have it.
ALTER TABLE :schema.namespace ADD COLUMN message_key bytea NOT NULL
    DEFAULT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8'));
