-- What version 7 of the schema has besides version 6.
ALTER TABLE executions ADD COLUMN file TEXT NOT NULL DEFAULT '';
UPDATE executions SET file = 'a script.py' WHERE code = 'print(2)';
UPDATE schema_version SET version = 7;
