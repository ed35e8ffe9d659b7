package fence

import (
	"fmt"
	"strings"
)

// quotedTable is a table's name, alone or after that of its schema, as SQL takes
// it literally.
func quotedTable(name string) (string, error) {
	schema, table, qualified := strings.Cut(name, ".")
	if !qualified {
		return quoted(name)
	}
	schema, err := quoted(schema)
	if err != nil {
		return "", err
	}
	table, err = quoted(table)
	if err != nil {
		return "", err
	}
	return schema + "." + table, nil
}

// longestName is where PostgreSQL cuts a name off, without an error.
const longestName = 63

// quoted is one name as SQL takes it literally. It refuses names that would need
// more than the quotes.
func quoted(name string) (string, error) {
	if name == "" || len(name) > longestName || '0' <= name[0] && name[0] <= '9' || strings.ContainsFunc(name, odd) {
		return "", fmt.Errorf("fence: %q is no name: want letters, digits and _ of ASCII, no digit first, 1 to %d of them", name, longestName)
	}
	return `"` + name + `"`, nil
}

func odd(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_')
}
