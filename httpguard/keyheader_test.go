package httpguard

import (
	"strings"
	"testing"
)

func TestKeysAreReadAsTheDraftSays(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  string // empty if it is refused
		loose bool   // it is a key only without StrictSyntax
	}{
		{[]string{`"8e03978e-40d5"`}, "8e03978e-40d5", false},
		{[]string{`8e03978e-40d5`}, "8e03978e-40d5", true},
		{[]string{"\t \"a b\" "}, "a b", false},
		{[]string{`"a\"b\\c"`}, `a"b\c`, false},
		{[]string{`"a;b,c"`}, "a;b,c", false},
		{[]string{`:a=b/c+d%e~`}, ":a=b/c+d%e~", true},
		{[]string{`"` + strings.Repeat(`\"`, 255) + `"`}, strings.Repeat(`"`, 255), false},
		{nil, "", false},
		{[]string{"a", "a"}, "", false},
		{[]string{""}, "", false},
		{[]string{`""`}, "", false},
		{[]string{`"`}, "", false},
		{[]string{`"a`}, "", false},
		{[]string{`"a\"`}, "", false},
		{[]string{`"a\n"`}, "", false},
		{[]string{`"a"b`}, "", false},
		{[]string{`"a" `}, "a", false},
		{[]string{`"a";p=1`}, "", false},
		{[]string{`"a", "b"`}, "", false},
		{[]string{`a,b`}, "", false},
		{[]string{`a;p=1`}, "", false},
		{[]string{`a b`}, "", false},
		{[]string{`a"`}, "", false},
		{[]string{"a\x7f"}, "", false},
		{[]string{"\"a\x00\""}, "", false},
		{[]string{`"ä"`}, "", false},
		{[]string{`ä`}, "", false},
		{[]string{strings.Repeat("k", 256)}, "", false},
	} {
		for _, strict := range []bool{false, true} {
			want := c.want
			if strict && c.loose {
				want = ""
			}
			got, err := parseKey(c.lines, strict)
			if got != want || (err == nil) != (want != "") {
				t.Errorf("%q, strict %t: %q, %v; want %q", c.lines, strict, got, err, want)
			}
		}
	}
}

// FuzzParseKey: what is a key fits into a record's, and in quotes it is the same one.
func FuzzParseKey(f *testing.F) {
	f.Add(`"a\"b"`)
	f.Add(`abc`)
	f.Add(`"a";p=1`)
	f.Fuzz(func(t *testing.T, line string) {
		key, err := parseKey([]string{line}, false)
		if err != nil {
			return
		}
		if len(key) == 0 || len(key) > 255 || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("%q is the key %q", line, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := parseKey([]string{quoted}, true); again != key || err != nil {
			t.Errorf("%q in quotes is %q, %v", key, again, err)
		}
	})
}
