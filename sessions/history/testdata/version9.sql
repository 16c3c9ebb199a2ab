-- What version 9 of the schema has besides version 8.
ALTER TABLE executions ADD COLUMN args TEXT NOT NULL DEFAULT '';
UPDATE executions SET args = '--n 4' WHERE code = 'print(2)';
UPDATE schema_version SET version = 9;
