-- Reads a record.
-- $1 key.
SELECT {columns} FROM {table} WHERE key = $1 AND expires_at > clock_timestamp()
