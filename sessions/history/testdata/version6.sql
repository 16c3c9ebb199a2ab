-- What version 6 of the schema has besides version 5.
CREATE INDEX executions_open ON executions (session, number) WHERE ended IS NULL;
UPDATE schema_version SET version = 6;
