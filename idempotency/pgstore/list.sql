-- Reads a page of records.
-- $1 the last key of the page before, $2 a state or '' for any, $3 whether only
-- those that a claim would take over, $4 how many.
SELECT key, {columns} FROM {table}
WHERE key > $1 AND expires_at > clock_timestamp() AND ($2 = '' OR state = $2)
	AND (NOT $3::boolean OR lease_until <= clock_timestamp())
	AND {only}
ORDER BY key LIMIT $4
