package fingerprint

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// canonical is the canonical form under the default limits.
func canonical(t *testing.T, text string) string {
	t.Helper()
	out, err := Canonical(nil, []byte(text), Limits{})
	if err != nil {
		t.Fatalf("%.100q: %v", text, err)
	}
	return string(out)
}

func TestCanonicalForm(t *testing.T) {
	for in, want := range map[string]string{
		" null\n":                                `null`,
		"\ttrue\r":                               `true`,
		"false":                                  `false`,
		"[ ]":                                    `[]`,
		"{ }":                                    `{}`,
		"[1 , [ ] , { } , 2]":                    `[1,[],{},2]`, // elements keep their order
		"{\"quantity\": 1,\n \"productId\": 42}": `{"productId":42,"quantity":1}`,
		`{"b":{"z":1,"y":[{"d":1,"c":2}]},"a":null}`:         `{"a":null,"b":{"y":[{"c":2,"d":1}],"z":1}}`,
		`{"aa":1,"a":2,"":3,"A":4,"b":5}`:                    `{"":3,"A":4,"a":2,"aa":1,"b":5}`,
		`"\u0041\/\u00e9\u20AC\ud83d\uDE00"`:                 `"A/é€😀"`,
		`"\"\\\b\f\n\r\t\u0000\u001F\u007f"`:                 `"\"\\\b\f\n\r\t\u0000\u001f` + "\x7f" + `"`,
		`"\u0022\u005c\u0008\u000C\u000a\u000D\u0009"`:       `"\"\\\b\f\n\r\t"`,
		"\"é\u2028<>&\uFFFD\uFFFF\"":                         "\"é\u2028<>&\uFFFD\uFFFF\"",
		`{"\u006eame":1,"a\"b":2,"a#b":3}`:                   `{"a\"b":2,"a#b":3,"name":1}`, // by the character, not by its escape
		`{"\uffff":1,"😀":2,"\ue000":3,"\ud7ff":4,"z":5}`:     "{\"z\":5,\"\uD7FF\":4,\"😀\":2,\"\uE000\":3,\"\uFFFF\":1}",
		`{"😁":1,"😀b":2,"😀":3,"é":4,"e\u0301":5,"\uE000x":6}`: "{\"e\u0301\":5,\"é\":4,\"😀\":3,\"😀b\":2,\"😁\":1,\"\uE000x\":6}",
	} {
		if got := canonical(t, in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestCanonicalAppends(t *testing.T) {
	out, err := Canonical([]byte("before "), []byte(`{"b":[2,1],"a":1}`), Limits{})
	if want := `before {"a":1,"b":[2,1]}`; err != nil || string(out) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
}

func TestCanonicalLeavesItsInput(t *testing.T) {
	in := []byte(`{"b": "\u0041", "a": 1.50}`)
	before := bytes.Clone(in)
	if _, err := Canonical(nil, in, Limits{}); err != nil || !bytes.Equal(in, before) {
		t.Errorf("%v, and %s became %s", err, before, in)
	}
}

// What is refused is refused at the byte that is wrong, and for the right reason.
func TestWhatReadersMayDifferOnIsRefused(t *testing.T) {
	for _, c := range []struct {
		in     string
		offset int
		err    error
	}{
		{"", 0, ErrSyntax},
		{"  ", 2, ErrSyntax},
		{"\ufeff{}", 0, ErrSyntax}, // a byte order mark
		{"nul", 3, ErrSyntax},
		{"nulL", 3, ErrSyntax},
		{"True", 0, ErrSyntax},
		{"NaN", 0, ErrSyntax},
		{"Infinity", 0, ErrSyntax},
		{"{} {}", 3, ErrSyntax},
		{"1\x00", 1, ErrSyntax},
		{"\x00", 0, ErrSyntax},
		{"1 // one", 2, ErrSyntax},
		{"'a'", 0, ErrSyntax},
		{"[1,]", 3, ErrSyntax},
		{"[,1]", 1, ErrSyntax},
		{"[1 2]", 3, ErrSyntax},
		{"[1", 2, ErrSyntax},
		{"[1}", 2, ErrSyntax},
		{"[\v1]", 1, ErrSyntax},
		{"[\u00a01]", 1, ErrSyntax},
		{`{"a":1,}`, 7, ErrSyntax},
		{`{,"a":1}`, 1, ErrSyntax},
		{`{a:1}`, 1, ErrSyntax},
		{`{"a" 1}`, 5, ErrSyntax},
		{`{"a":}`, 5, ErrSyntax},
		{`{"a":1]`, 6, ErrSyntax},
		{`{"a":1`, 6, ErrSyntax},
		{`{"a":1 "b":2}`, 7, ErrSyntax},
		{`"a`, 2, ErrSyntax},
		{`"a\`, 3, ErrSyntax},
		{"\"a\nb\"", 2, ErrSyntax},
		{"\"a\x00b\"", 2, ErrSyntax},
		{"\"a\\\nb\"", 3, ErrSyntax},
		{`"ab\x41"`, 3, ErrSyntax},
		{`"\'"`, 1, ErrSyntax},
		{`"\u12"`, 1, ErrSyntax},
		{`"\u12G4"`, 1, ErrSyntax},
		{`"\U0041"`, 1, ErrSyntax},
		{`"\u+041"`, 1, ErrSyntax},
		{"01", 0, ErrSyntax},
		{"-01", 1, ErrSyntax},
		{"00", 0, ErrSyntax},
		{"+1", 0, ErrSyntax},
		{".5", 0, ErrSyntax},
		{"5.", 2, ErrSyntax},
		{"-", 1, ErrSyntax},
		{"--1", 1, ErrSyntax},
		{"1e", 2, ErrSyntax},
		{"1e+", 3, ErrSyntax},
		{"1e-+1", 3, ErrSyntax},
		{"1.e1", 2, ErrSyntax},
		{"0x10", 1, ErrSyntax},
		{"1_000", 1, ErrSyntax},
		{"1.2.3", 3, ErrSyntax},
		{`{"a":1,"b":2,"a":1}`, 13, ErrDuplicate}, // with the same value too
		{`{"a":1,"\u0061":2}`, 7, ErrDuplicate},
		{`{"b":1,"a":[{"c":1,"d":2,"c":3}]}`, 25, ErrDuplicate},
		{`{"":1,"":2}`, 6, ErrDuplicate},
		{"\"a\xff\"", 2, ErrUnicode},
		{"\"\xc0\xaf\"", 1, ErrUnicode},         // / in two bytes
		{"\"\xed\xa0\x80\"", 1, ErrUnicode},     // a surrogate in UTF-8
		{"\"\xf4\x90\x80\x80\"", 1, ErrUnicode}, // beyond U+10FFFF
		{"\"ok\uFFFD\xe2\x82\"", 6, ErrUnicode}, // cut short
		{"{\"\x80\":1}", 2, ErrUnicode},
		{`"\ud83d"`, 1, ErrUnicode},
		{`"a\ude00"`, 2, ErrUnicode},
		{`"\ude00\ud83d"`, 1, ErrUnicode}, // the wrong way round
		{`"\ud83d\ud83d"`, 1, ErrUnicode},
		{`"\ud83dx\ude00"`, 1, ErrUnicode},
		{`"\ud83d\u0041"`, 1, ErrUnicode},
		{`"\ud83d\n"`, 1, ErrUnicode},
		{`"\ud83d__de00"`, 1, ErrUnicode},
		{`"\ud83d\nude00"`, 1, ErrUnicode},
		{`"\ud83d\ude0"`, 1, ErrUnicode},
		{`{"\ud800":1,"\ud801":2}`, 2, ErrUnicode},
		{"\xff", 0, ErrSyntax}, // outside of strings
	} {
		out, err := Canonical(nil, []byte(c.in), Limits{})
		var refused *InputError
		if !errors.As(err, &refused) || !errors.Is(err, c.err) || refused.Offset != c.offset {
			t.Errorf("%q: got %s, %v, want %v at %d", c.in, out, err, c.err, c.offset)
			continue
		}
		if out != nil {
			t.Errorf("%q: refused, yet there is %q", c.in, out)
		}
	}
}

func TestErrorsSayWhatWouldBeRight(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1,"a":2}`: "offset 7: duplicate name: want each name of an object once",
		`{"a" 1}`:       `offset 5: not strict JSON: want : after a name, not '1'`,
		`[1`:            `offset 2: not strict JSON: want , or ] after an element, not the end`,
		"\xff":          `offset 0: not strict JSON: want a value, not a byte that is no UTF-8`,
		`["\ud83d"]`:    `offset 2: not Unicode: want a surrogate pair, a high one and then a low one`,
	} {
		if _, err := Canonical(nil, []byte(in), Limits{}); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

// An error may be logged and shown to the client: a long or secret text is not in
// it.
func TestErrorsDoNotQuoteTheText(t *testing.T) {
	secret := strings.Repeat("4111111111111111", 1000)
	for _, in := range []string{
		`{"` + secret + `":1,"` + secret + `":2}`,
		`["` + secret + `" 1]`,
		`["` + secret + `\q"]`,
		secret + `x`,
		`1e` + secret,
		`"` + secret,
	} {
		_, err := Canonical(nil, []byte(in), Limits{})
		if err == nil || len(err.Error()) > 150 || strings.Contains(err.Error(), secret[:16]) {
			t.Errorf("%.20q…: %v", in, err)
		}
	}
}

func TestTextsOverTheLimitAreRefusedUnread(t *testing.T) {
	for _, limit := range []int{0, 10} {
		size := limit
		if limit == 0 {
			size = 1 << 20
		}
		fits := []byte(`"` + strings.Repeat("a", size-2) + `"`)
		if _, err := Canonical(nil, fits, Limits{Bytes: limit}); err != nil {
			t.Errorf("%d bytes under a limit of %d: %v", len(fits), limit, err)
		}
		over := bytes.Repeat([]byte{0xff}, size+1)
		_, err := Canonical(nil, over, Limits{Bytes: limit})
		var refused *InputError
		if !errors.As(err, &refused) || !errors.Is(err, ErrTooLarge) || refused.Offset != size {
			t.Errorf("%d bytes under a limit of %d: %v", len(over), limit, err)
		}
	}
}

func TestDeepTextsAreRefused(t *testing.T) {
	nest := func(levels int) string {
		return strings.Repeat(`[{"a":`, levels/2) + strings.Repeat("[", levels%2) +
			strings.Repeat("]", levels%2) + strings.Repeat("}]", levels/2)
	}
	for _, c := range []struct {
		in    string
		depth int
		err   error
	}{
		{strings.Repeat("[", 64) + strings.Repeat("]", 64), 0, nil},
		{strings.Repeat("[", 65) + strings.Repeat("]", 65), 0, ErrTooDeep},
		{nest(3), 3, nil},
		{nest(5), 4, ErrTooDeep},
		{`{"a":{"a":{}}}`, 3, nil},
		{`{"a":{"a":{}}}`, 2, ErrTooDeep},
		{"[]", 1, nil},
		{"[[]]", 1, ErrTooDeep},
		{"[" + strings.Repeat("[],{},", 100) + "[]]", 2, nil}, // side by side
		{strings.Repeat("[", 1000) + strings.Repeat("]", 1000), 1000, nil},
		{strings.Repeat("[", 5_000_000), 1000, ErrTooDeep},
		{strings.Repeat(`{"a":`, 1_000_000), 1000, ErrTooDeep},
	} {
		_, err := Canonical(nil, []byte(c.in), Limits{Bytes: 8 << 20, Depth: c.depth})
		if !errors.Is(err, c.err) {
			t.Errorf("%.20q…, %d bytes, depth %d: %v, want %v", c.in, len(c.in), c.depth, err, c.err)
		}
	}
	var refused *InputError
	if _, err := Canonical(nil, []byte(`[1,[[]]]`), Limits{Depth: 2}); !errors.As(err, &refused) || refused.Offset != 4 {
		t.Errorf("want the bracket that is too deep, at 4: %v", err)
	}
}

func TestLimitsOutOfRangeAreRefusedByName(t *testing.T) {
	for field, limits := range map[string]Limits{
		"Limits.Bytes":         {Bytes: -1},
		"Limits.Depth":         {Depth: -1},
		"Limits.Depth is 1001": {Depth: 1001},
	} {
		err := limits.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%+v: %v, want one that begins with %s", limits, err, field)
		}
		if _, err := Canonical(nil, []byte("1"), limits); err == nil {
			t.Errorf("%+v were used", limits)
		}
	}
	if err := (Limits{}).Validate(); err != nil {
		t.Error(err)
	}
}
