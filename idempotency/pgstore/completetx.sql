-- Makes a record SUCCESS inside a transaction of the caller's.
-- $1 key, $2 owner, $3 response, $4 retention in µs.
UPDATE {table} SET
	state       = 'SUCCESS',
	lease_until = clock_timestamp(),
	taken_over  = NULL,
	reason      = '',
	response    = $3::bytea,
	expires_at  = greatest(expires_at, clock_timestamp() + $4::bigint * interval '1 microsecond')
WHERE key = $1 AND owner = $2 AND state = 'IN_PROGRESS' AND expires_at > clock_timestamp()
