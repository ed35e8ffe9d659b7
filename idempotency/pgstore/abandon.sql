-- Gives up a record under which its owner has done nothing.
-- $1 key, $2 owner, $3 whether earlier attempts are known to have done nothing.
-- Gives whether it did so, and the owner and the state that the record had when
-- the statement began, or nulls if there was none.
WITH before AS (
	SELECT owner, state FROM {table} WHERE key = $1 AND expires_at > clock_timestamp()
), removed AS (
	DELETE FROM {table}
	WHERE key = $1 AND owner = $2 AND state = 'IN_PROGRESS' AND (taken_over IS NULL OR $3::boolean)
	RETURNING 1
), left_open AS (
	UPDATE {table} SET state = 'UNKNOWN', lease_until = clock_timestamp()
	WHERE key = $1 AND owner = $2 AND state = 'IN_PROGRESS' AND NOT (taken_over IS NULL OR $3::boolean)
	RETURNING 1
)
SELECT EXISTS (SELECT FROM removed) OR EXISTS (SELECT FROM left_open), before.owner, before.state
FROM (SELECT) AS one LEFT JOIN before ON true
