-- Claims a record, as its first or as its next owner.
-- $1 key, $2 fingerprint, $3 owner, $4 holder, $5 lease in µs, $6 retention in µs,
-- $7 all fingerprints that match, as an array.
-- Gives the record as it is after the claim, with true; or as it was when the
-- statement began, with false, if that left nothing to claim; or nothing, if it has
-- come to be since then. The last column is the server's time.
--
-- The time is read once and before any wait for the row: a lease that is compared
-- with it is taken to last longer than it does, never shorter. excluded.started_at
-- is that time.
WITH clock AS MATERIALIZED (
	SELECT clock_timestamp() AS now
), claimed AS (
	INSERT INTO {table} AS r
		(key, fingerprint, state, owner, lease_until, attempt, started_at, holder, reason, expires_at)
	SELECT $1, $2, 'IN_PROGRESS', $3, now + $5::bigint * interval '1 microsecond', 1, now, $4, '',
		now + $6::bigint * interval '1 microsecond'
	FROM clock
	ON CONFLICT (key) DO UPDATE SET
		fingerprint = CASE WHEN r.expires_at <= excluded.started_at THEN excluded.fingerprint ELSE r.fingerprint END,
		state       = 'IN_PROGRESS',
		owner       = excluded.owner,
		lease_until = excluded.lease_until,
		attempt     = CASE
			WHEN r.expires_at <= excluded.started_at THEN 1
			WHEN r.state = 'IN_PROGRESS' AND r.owner = excluded.owner THEN r.attempt
			ELSE r.attempt + 1 END,
		started_at  = CASE WHEN r.expires_at <= excluded.started_at THEN excluded.started_at ELSE r.started_at END,
		taken_over  = CASE
			WHEN r.expires_at <= excluded.started_at THEN NULL
			WHEN r.state = 'IN_PROGRESS' AND r.owner = excluded.owner THEN r.taken_over
			ELSE r.state END,
		holder      = excluded.holder,
		reason      = CASE WHEN r.expires_at <= excluded.started_at THEN '' ELSE r.reason END,
		response    = NULL,
		expires_at  = greatest(r.expires_at, excluded.expires_at)
	WHERE r.expires_at <= excluded.started_at
		OR r.fingerprint = ANY ($7::text[]) AND r.state <> 'SUCCESS'
			AND (r.lease_until <= excluded.started_at OR r.state = 'IN_PROGRESS' AND r.owner = excluded.owner)
	RETURNING {columns}
)
SELECT true, {columns}, now FROM claimed, clock
UNION ALL
SELECT false, {columns}, now FROM {table}, clock
WHERE key = $1 AND expires_at > now AND NOT EXISTS (SELECT FROM claimed)
