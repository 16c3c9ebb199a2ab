-- What version 5 of the schema has besides version 4.
ALTER TABLE sessions ADD COLUMN profile TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN image TEXT NOT NULL DEFAULT '';
UPDATE schema_version SET version = 5;
