package pgstore

import (
	_ "embed" // for the statements
	"fmt"
	"strings"
)

var (
	//go:embed schema.sql
	schemaSource string
	//go:embed claim.sql
	claimSource string
	//go:embed renew.sql
	renewSource string
	//go:embed complete.sql
	completeSource string
	//go:embed completetx.sql
	completeTxSource string
	//go:embed unknown.sql
	unknownSource string
	//go:embed abandon.sql
	abandonSource string
	//go:embed resolve.sql
	resolveSource string
	//go:embed get.sql
	getSource string
	//go:embed list.sql
	listSource string
	//go:embed expired.sql
	expiredSource string
)

const columns = "fingerprint, state, owner, lease_until, attempt, started_at, taken_over, holder, reason, response, expires_at"

// statements are what a store says, with its table's name in place.
type statements struct {
	schema, claim, renew, complete, completeTx, unknown, abandon, resolve, get, list, listOpen, expired string
}

func statementsFor(table string) (statements, error) {
	schema, name, qualified := strings.Cut(table, ".")
	if !qualified {
		schema, name = "", table
	}
	if !plain(name) || qualified && !plain(schema) {
		return statements{}, fmt.Errorf("Config.Table is %q: want letters, digits and _ of ASCII, no digit first, 1 to %d of them, and the same with a dot before it for a schema", table, longestName)
	}
	full := `"` + name + `"`
	if qualified {
		full = `"` + schema + `".` + full
	}
	in := func(source string, more ...string) string {
		return strings.NewReplacer(append(more, "{table}", full, "{columns}", columns,
			"{expiry}", `"`+name+`_expires_at"`, "{open}", `"`+name+`_open"`)...).Replace(source)
	}
	return statements{
		schema: in(schemaSource), claim: in(claimSource), renew: in(renewSource), complete: in(completeSource),
		completeTx: in(completeTxSource), unknown: in(unknownSource), abandon: in(abandonSource),
		resolve: in(resolveSource), get: in(getSource), expired: in(expiredSource),
		list: in(listSource, "{only}", "true"),
		// As the index of open records has it, so that it serves.
		listOpen: in(listSource, "{only}", "state <> 'SUCCESS'"),
	}, nil
}

// longestName leaves room for what the names of indexes add, as PostgreSQL cuts
// names off after 63 bytes without an error.
const longestName = 50

// plain reports whether name, in quotes, is that name and nothing else.
func plain(name string) bool {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_')
	}
	return name != "" && len(name) <= longestName && (name[0] < '0' || name[0] > '9') && !strings.ContainsFunc(name, odd)
}
