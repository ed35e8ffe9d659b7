-- Prolongs a lease.
-- $1 key, $2 owner, $3 lease in µs, $4 retention in µs.
UPDATE {table} SET
	lease_until = clock_timestamp() + $3::bigint * interval '1 microsecond',
	expires_at  = greatest(expires_at, clock_timestamp() + $4::bigint * interval '1 microsecond')
WHERE key = $1 AND owner = $2 AND state = 'IN_PROGRESS' AND expires_at > clock_timestamp()
