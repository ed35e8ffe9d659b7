-- Makes a record SUCCESS.
-- $1 key, $2 owner, $3 response, $4 retention in µs, and for a record that has gone:
-- $5 fingerprint, $6 attempt, $7 when it began, or null for now.
-- Gives whether it did so, and the owner and the state that it had when the
-- statement began, or nulls if there was none. excluded.lease_until is the time.
WITH clock AS MATERIALIZED (
	SELECT clock_timestamp() AS now
), before AS (
	SELECT owner, state FROM {table}, clock WHERE key = $1 AND expires_at > now
), done AS (
	INSERT INTO {table} AS r
		(key, fingerprint, state, owner, lease_until, attempt, started_at, holder, reason, response, expires_at)
	SELECT $1, $5, 'SUCCESS', $2, now, $6::bigint, coalesce($7::timestamptz, now), '', '', $3::bytea,
		now + $4::bigint * interval '1 microsecond'
	FROM clock
	ON CONFLICT (key) DO UPDATE SET
		fingerprint = CASE WHEN r.expires_at <= excluded.lease_until THEN excluded.fingerprint ELSE r.fingerprint END,
		state       = 'SUCCESS',
		owner       = excluded.owner,
		lease_until = excluded.lease_until,
		attempt     = CASE WHEN r.expires_at <= excluded.lease_until THEN excluded.attempt ELSE r.attempt END,
		started_at  = CASE WHEN r.expires_at <= excluded.lease_until THEN excluded.started_at ELSE r.started_at END,
		taken_over  = NULL,
		holder      = CASE WHEN r.expires_at <= excluded.lease_until THEN '' ELSE r.holder END,
		reason      = '',
		response    = excluded.response,
		expires_at  = greatest(r.expires_at, excluded.expires_at)
	WHERE r.expires_at <= excluded.lease_until OR r.owner = excluded.owner AND r.state <> 'SUCCESS'
	RETURNING 1
)
SELECT EXISTS (SELECT FROM done), before.owner, before.state
FROM clock LEFT JOIN before ON true
