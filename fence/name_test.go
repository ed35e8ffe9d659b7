package fence

import (
	"strings"
	"testing"
)

func TestNamesAreQuotedOrRefused(t *testing.T) {
	long := strings.Repeat("x", longestName)
	for _, c := range []struct{ name, want string }{
		{"fence", `"fence"`},
		{"shop.fence", `"shop"."fence"`},
		{"Fence_2", `"Fence_2"`},
		{"order", `"order"`},
		{long, `"` + long + `"`},
		{long + "x", ""},
		{"", ""},
		{".", ""},
		{"shop.", ""},
		{".fence", ""},
		{"a.b.c", ""},
		{"2fence", ""},
		{`fence"; DROP TABLE orders; --`, ""},
		{"fence held", ""},
		{"fen\x00ce", ""},
		{"fençe", ""},
	} {
		got, err := quotedTable(c.name)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestTheFenceIsTheLastPlaceholder(t *testing.T) {
	for _, c := range []struct{ condition, want string }{
		{"", `UPDATE "stock" SET left = left - 1, "last_fence" = $2 WHERE (id = $1) AND "last_fence" < $2`},
		{"left > 0 OR TRUE", `UPDATE "stock" SET left = left - 1, "last_fence" = $2 WHERE (id = $1) AND (left > 0 OR TRUE) AND "last_fence" < $2`},
	} {
		got := update(`"stock"`, `"last_fence"`, "id = $1", "left = left - 1", c.condition, 2)
		if got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}
