-- What version 2 of the schema has besides version 1.
ALTER TABLE executions ADD COLUMN restores INTEGER NOT NULL DEFAULT 0;
UPDATE schema_version SET version = 2;
UPDATE executions SET restores = 1 WHERE id = 22;
