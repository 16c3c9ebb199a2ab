-- What version 8 of the schema has besides version 7.
CREATE INDEX sessions_open ON sessions (issuer, subject) WHERE closed IS NULL AND deleted = 0;
CREATE INDEX sessions_closed ON sessions (issuer, subject, used DESC, name, profile, executions, closed, deleted) WHERE closed IS NOT NULL AND deleted = 0;
UPDATE schema_version SET version = 8;
