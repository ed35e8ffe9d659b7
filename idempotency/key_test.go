package idempotency_test

import (
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/idempotency"
)

func TestKeysAsText(t *testing.T) {
	for want, k := range map[string]idempotency.Key{
		"orders:u1001:req-001":    {Operation: "orders", Principal: "u1001", Value: "req-001"},
		"POST%20/orders:u1:a%3Ab": {Operation: "POST /orders", Principal: "u1", Value: "a:b"},
		"o:%7Bu%7D:100%25":        {Operation: "o", Principal: "{u}", Value: "100%"},
		"o:u:%C3%A9%FF%00%0A":     {Operation: "o", Principal: "u", Value: "é\xff\x00\n"},
	} {
		if got := k.String(); got != want {
			t.Errorf("%+v: %q, want %q", k, got, want)
		}
		if back, err := idempotency.ParseKey(want); err != nil || back != k {
			t.Errorf("%q: %+v, %v", want, back, err)
		}
	}
	for _, text := range []string{
		"", "orders", "a:b", "a:b:c:d", "::", "a::c", "a:b:%4", "a:b:%zz", "a:b:%61", "a:b:%3a", "a:b: ", "a:b:{",
		"a:b:" + strings.Repeat("x", 256),
	} {
		if k, err := idempotency.ParseKey(text); err == nil {
			t.Errorf("%q is %+v", text, k)
		}
	}
}

func TestDigestsHideKeysAndTellThemApart(t *testing.T) {
	other := order
	other.Value = "req-002"
	if d := order.Digest(); len(d) != 16 || d != order.Digest() || d == other.Digest() || strings.Contains(d, order.Value) {
		t.Errorf("%q, %q", d, other.Digest())
	}
	a, b := idempotency.NewToken(), idempotency.NewToken()
	if a == b || a.Digest() == b.Digest() || len(a.Digest()) != 8 || len(a) < 22 {
		t.Errorf("%d and %d bytes, %q and %q", len(a), len(b), a.Digest(), b.Digest())
	}
}

// Two keys have one text only if they are one key, whatever their parts hold.
func FuzzKeysDoNotMeet(f *testing.F) {
	f.Add("a:b", "c", "d", "a", "b:c", "d")
	f.Add("a%3Ab", "c", "d", "a:b", "c", "d")
	f.Add("é", "\xff", "\x00", "e\u0301", "\xfe", "%00")
	f.Add("{a}b", "a}b{", "{}", "{a}b", "a}b{", "}{")
	f.Fuzz(func(t *testing.T, ao, ap, av, bo, bp, bv string) {
		a, b := idempotency.Key{Operation: ao, Principal: ap, Value: av}, idempotency.Key{Operation: bo, Principal: bp, Value: bv}
		if (a.String() == b.String()) != (a == b) {
			t.Errorf("%+v and %+v: %q and %q", a, b, a.String(), b.String())
		}
		if a.Validate() != nil {
			return
		}
		if len(a.String()) > 3*3*255+2 || strings.ContainsAny(a.String(), " {}\x00\n") {
			t.Errorf("%+v: %q", a, a.String())
		}
		if back, err := idempotency.ParseKey(a.String()); err != nil || back != a {
			t.Errorf("%+v came back as %+v, %v", a, back, err)
		}
	})
}
