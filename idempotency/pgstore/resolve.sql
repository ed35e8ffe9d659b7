-- Enters a decision about a record that is UNKNOWN.
-- $1 key, $2 attempt, $3 whether it happened, $4 response, $5 retention in µs.
-- Gives how many records it changed.
WITH removed AS (
	DELETE FROM {table}
	WHERE key = $1 AND attempt = $2 AND state = 'UNKNOWN' AND expires_at > clock_timestamp() AND NOT $3::boolean
	RETURNING 1
), repaired AS (
	UPDATE {table} SET
		state       = 'SUCCESS',
		owner       = '',
		lease_until = clock_timestamp(),
		taken_over  = NULL,
		reason      = '',
		response    = $4::bytea,
		expires_at  = greatest(expires_at, clock_timestamp() + $5::bigint * interval '1 microsecond')
	WHERE key = $1 AND attempt = $2 AND state = 'UNKNOWN' AND expires_at > clock_timestamp() AND $3::boolean
	RETURNING 1
)
SELECT (SELECT count(*) FROM removed) + (SELECT count(*) FROM repaired)
