-- A history as version 1 of the schema has it. BLOB stands for the name of a file.
CREATE TABLE sessions (
	id        INTEGER PRIMARY KEY,
	issuer    TEXT    NOT NULL,
	subject   TEXT    NOT NULL,
	name      TEXT    NOT NULL,
	workspace TEXT    NOT NULL DEFAULT '',
	language  TEXT    NOT NULL,
	created   BIGINT  NOT NULL,
	used      BIGINT  NOT NULL,
	closed    BIGINT,
	why       TEXT    NOT NULL DEFAULT '',
	holder    TEXT    NOT NULL DEFAULT '',
	deleted   INTEGER NOT NULL DEFAULT 0,
	generations INTEGER NOT NULL DEFAULT 0,
	executions  INTEGER NOT NULL DEFAULT 0,
	bytes       BIGINT  NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX sessions_name ON sessions (issuer, subject, name) WHERE deleted = 0;

CREATE TABLE generations (
	session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	number  INTEGER NOT NULL,
	ref     TEXT    NOT NULL,
	seq     BIGINT  NOT NULL DEFAULT 0,
	started BIGINT  NOT NULL,
	ended   BIGINT,
	why     TEXT    NOT NULL DEFAULT '',
	PRIMARY KEY (session, number)
);

CREATE TABLE executions (
	id         INTEGER PRIMARY KEY,
	session    INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	number     INTEGER NOT NULL,
	generation INTEGER NOT NULL DEFAULT 0,
	msg_id     TEXT    NOT NULL,
	code       TEXT    NOT NULL,
	caller     TEXT    NOT NULL DEFAULT '',
	timeout    BIGINT  NOT NULL,
	preamble   TEXT    NOT NULL DEFAULT '',
	queued     BIGINT  NOT NULL,
	started    BIGINT,
	ended      BIGINT,
	status     TEXT    NOT NULL DEFAULT '',
	error      TEXT    NOT NULL DEFAULT '',
	result     TEXT    NOT NULL DEFAULT '',
	outputs    INTEGER NOT NULL DEFAULT 0,
	own        INTEGER NOT NULL DEFAULT 0,
	bytes      BIGINT  NOT NULL DEFAULT 0,
	UNIQUE (session, number)
);

CREATE TABLE outputs (
	execution INTEGER NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
	idx       INTEGER NOT NULL,
	seq       BIGINT  NOT NULL,
	kind      TEXT    NOT NULL,
	time      BIGINT  NOT NULL,
	size      BIGINT  NOT NULL,
	body      BLOB,
	blob      TEXT,
	PRIMARY KEY (execution, idx)
);
CREATE INDEX outputs_blob ON outputs (blob) WHERE blob IS NOT NULL;

CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (1);

INSERT INTO sessions (id, issuer, subject, name, workspace, language, created, used, holder, generations, executions, bytes)
	VALUES (11, 'https://a', 'alice', 'runs', 'abcdefghijklmnop', 'python', 1700000000000000001, 1700000009000000000, 's0/killed', 2, 2, 100128);
INSERT INTO sessions (id, issuer, subject, name, language, created, used, closed, why, executions)
	VALUES (12, 'https://a', 'bob', 'done', 'bash', 1700000000000000000, 1700000002000000000, 1700000002000000000, 'nobody used it', 1);
INSERT INTO generations (session, number, ref, seq, started, ended, why)
	VALUES (11, 1, '{"provisioner":"local","version":3,"kernel_id":"k1","data":{"pid":7}}', 4, 1700000000000000000, 1700000004000000000, 'out of memory');
INSERT INTO generations (session, number, ref, started)
	VALUES (11, 2, '{"provisioner":"local","version":3,"kernel_id":"k2"}', 1700000005000000000);
INSERT INTO executions (id, session, number, generation, msg_id, code, caller, timeout, preamble, queued, started, ended, status, error, result, outputs, own, bytes)
	VALUES (21, 11, 1, 1, 'm-1', 'print(1)', 'a client', 600000000000, 'first this', 1700000001000000000, 1700000002000000000, 1700000003000000000,
		'error', 'E: v', '{"result":{"status":"error","execution_count":1,"error":{"Name":"E","Value":"v","Traceback":["l"]},"duration":1000000000}}', 3, 3, 100128);
INSERT INTO executions (id, session, number, msg_id, code, timeout, queued)
	VALUES (22, 11, 2, 'm-2', 'print(2)', 600000000000, 1700000006000000000);
INSERT INTO executions (id, session, number, msg_id, code, timeout, queued, ended, status, error, result)
	VALUES (23, 12, 1, 'm-3', 'ls', 600000000000, 1700000001000000000, 1700000001500000000, 'not run', 'given up',
		'{"failure":{"kind":"cancelled","message":"given up","hint":"try"}}');
INSERT INTO outputs (execution, idx, seq, kind, time, size, body)
	VALUES (21, 0, 2, 'stream', 1700000002000000001, 15, x'0102067374646f757403046f6e650a');
INSERT INTO outputs (execution, idx, seq, kind, time, size, blob)
	VALUES (21, 1, 3, 'stream', 0, 100100, 'BLOB');
INSERT INTO outputs (execution, idx, seq, kind, time, size, body)
	VALUES (21, 2, 4, 'error', 0, 13, x'010101180901450a01760b016c');
