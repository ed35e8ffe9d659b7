-- Records of package idempotency. Times are this server's.
CREATE TABLE IF NOT EXISTS {table} (
	key         text COLLATE "C" PRIMARY KEY,
	fingerprint text        NOT NULL,
	state       text        NOT NULL CHECK (state IN ('IN_PROGRESS', 'SUCCESS', 'UNKNOWN')),
	owner       text        NOT NULL, -- the last owner's token
	lease_until timestamptz NOT NULL, -- or the end of the pause after UNKNOWN, or when it became SUCCESS
	attempt     bigint      NOT NULL,
	started_at  timestamptz NOT NULL,
	taken_over  text,                 -- the state it was taken over in, until earlier attempts are answered for
	holder      text        NOT NULL,
	reason      text        NOT NULL,
	response    bytea,
	expires_at  timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS {expiry} ON {table} (expires_at);
CREATE INDEX IF NOT EXISTS {open} ON {table} (key) WHERE state <> 'SUCCESS';
