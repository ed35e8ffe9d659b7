-- Deletes records that have expired, those first that did so first, and passes
-- over what another transaction is at.
-- $1 how many at most.
DELETE FROM {table} WHERE key IN (
	SELECT key FROM {table} WHERE expires_at <= clock_timestamp()
	ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
