-- What version 3 of the schema has besides version 2.
ALTER TABLE executions ADD COLUMN dropped BIGINT;
ALTER TABLE executions ADD COLUMN dropped_outputs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN dropped_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN dropped_to INTEGER NOT NULL DEFAULT 0;
CREATE INDEX executions_ended ON executions (ended, bytes) WHERE ended IS NOT NULL;
DROP INDEX outputs_blob;
CREATE INDEX outputs_blob ON outputs (blob, size) WHERE blob IS NOT NULL;
UPDATE schema_version SET version = 3;
