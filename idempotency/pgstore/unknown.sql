-- Makes a record UNKNOWN.
-- $1 key, $2 owner, $3 reason, $4 pause in µs, $5 retention in µs.
UPDATE {table} SET
	state       = 'UNKNOWN',
	reason      = $3,
	lease_until = clock_timestamp() + $4::bigint * interval '1 microsecond',
	expires_at  = greatest(expires_at, clock_timestamp() + $5::bigint * interval '1 microsecond')
WHERE key = $1 AND owner = $2 AND state <> 'SUCCESS' AND expires_at > clock_timestamp()
