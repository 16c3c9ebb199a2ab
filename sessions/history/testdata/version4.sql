-- What version 4 of the schema has besides version 3.
CREATE TABLE audit_heads (log TEXT PRIMARY KEY, head TEXT NOT NULL);
UPDATE schema_version SET version = 4;
