package fingerprint

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// order is a request as a client may send it, and what it means.
const (
	order     = `{"quantity": 1.0, "productId": "42", "couponId": null, "addressVersion": "7"}`
	orderSame = `{"addressVersion":"7","couponId":null,"productId":"42","quantity":1}`
)

func newScheme(t *testing.T, config Config) *Scheme {
	t.Helper()
	scheme, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// The sums were computed by another program, in another language. If one of them
// changes, every stored fingerprint stops matching.
func TestSumsStayWhatTheyAre(t *testing.T) {
	plain := newScheme(t, Config{})
	second := newScheme(t, Config{Version: "orders-2"})
	keyed := newScheme(t, Config{Key: []byte("0123456789abcdef0123456789abcdef")})
	ofJSON := func(s *Scheme) Print {
		p, err := s.JSON([]byte(order))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		of        string
		got, want Print
	}{
		{"nothing", plain.Sum(), "v1:b7d7d13d143ca4e14dba31cbe86cd0b4f2edaaf7ed0bba84c9cf54890d9b8ab9"},
		{"an empty part", plain.Sum(nil), "v1:74442291e36ef587f3aa5d6bfb23c704c29633f7a56f76530f91afe00ec55e17"},
		{"two parts", plain.Sum([]byte("a"), []byte("bc")), "v1:c8982b9e4b884cb31b6abd51be7ad2362b551183ecdd27e59a49be6503ddfedf"},
		{"the order", ofJSON(plain), "v1:c2e8625a2923d535cce6b1faed48b0c95d95be65bd9da97cc81a816ea071bd1a"},
		{"the order, in another version", ofJSON(second), "orders-2:ed26ffdc5ffb80bfec2c68da4170b2d7a8d187effa576d905e092c6f95585089"},
		{"the order, with a key", ofJSON(keyed), "v1:2c926eda53e1516916ec3f4436c51e15a934da8694344538cf5b2a9f0b24390d"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.of, c.got, c.want)
		}
	}
}

func TestJSONIsTheSumOfTheCanonicalForm(t *testing.T) {
	scheme := newScheme(t, Config{})
	got, err := scheme.JSON([]byte(order))
	if want := scheme.Sum([]byte(orderSame)); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// Two different orders must not have one fingerprint, whichever field they differ
// in; the same order must not have two.
func TestEveryFieldCounts(t *testing.T) {
	scheme := newScheme(t, Config{})
	prints := map[Print]string{}
	for _, text := range []string{
		orderSame,
		`{"addressVersion":"7","couponId":null,"productId":"43","quantity":1}`,
		`{"addressVersion":"7","couponId":null,"productId":"42","quantity":2}`,
		`{"addressVersion":"8","couponId":null,"productId":"42","quantity":1}`,
		`{"addressVersion":"7","couponId":"","productId":"42","quantity":1}`,
		`{"addressVersion":"7","couponId":"null","productId":"42","quantity":1}`,
		`{"addressVersion":"7","productId":"42","quantity":1}`,
		`{"addressVersion":"7","couponId":null,"productId":42,"quantity":1}`,
		`{"addressVersion":"7","couponId":null,"productId":"42","quantity":"1"}`,
		`{"addressVersion":"7","couponId":null,"productid":"42","quantity":1}`,
		`[{"addressVersion":"7","couponId":null,"productId":"42","quantity":1}]`,
		`{"addressVersion":"7","couponId":null,"productId":"42","quantity":1.0000000000000000001}`,
	} {
		p, err := scheme.JSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if other, there := prints[p]; there {
			t.Errorf("%s and %s have one fingerprint", text, other)
		}
		prints[p] = text
	}
	if p, err := scheme.JSON([]byte(order)); err != nil || prints[p] != orderSame {
		t.Errorf("%s: %s, %v, want that of %s", order, p, err, orderSame)
	}
}

func TestJSONRefusesWhatCanonicalDoes(t *testing.T) {
	scheme := newScheme(t, Config{Limits: Limits{Bytes: 20, Depth: 2}})
	for in, want := range map[string]error{
		`{"a":1,"a":1}`:         ErrDuplicate,
		`{"a":1`:                ErrSyntax,
		"\"\xff\"":              ErrUnicode,
		`1e1000000000000000`:    ErrRange,
		`[[[]]]`:                ErrTooDeep,
		`"more than 20 bytes "`: ErrTooLarge,
		``:                      ErrSyntax,
	} {
		if p, err := scheme.JSON([]byte(in)); p != "" || !errors.Is(err, want) {
			t.Errorf("%s: %q, %v, want %v", in, p, err, want)
		}
	}
}

func TestWherePartsEndIsInTheSum(t *testing.T) {
	scheme := newScheme(t, Config{})
	prints := map[Print]string{}
	for _, parts := range []string{"", "|", "||", "a", "a|", "|a", "a|bc", "ab|c", "abc", "abc|", "a|b|c"} {
		var split [][]byte
		if parts != "" {
			split = bytes.Split([]byte(parts), []byte("|"))
		}
		p := scheme.Sum(split...)
		if other, there := prints[p]; there {
			t.Errorf("%q and %q have one fingerprint", parts, other)
		}
		prints[p] = parts
	}
}

func TestVersionIsInTheSumAndInFrontOfIt(t *testing.T) {
	first, second := newScheme(t, Config{}).Sum([]byte("a")), newScheme(t, Config{Version: "v2"}).Sum([]byte("a"))
	if first.Equal(second) || first[3:] == second[3:] {
		t.Errorf("%s and %s: want two sums", first, second)
	}
	if first.Version() != "v1" || second.Version() != "v2" || Print("").Version() != "" {
		t.Errorf("versions %q, %q and %q", first.Version(), second.Version(), Print("").Version())
	}
	// The version is a part like any other and does not flow into the next.
	if a, b := newScheme(t, Config{Version: "v1a"}).Sum([]byte("b")), newScheme(t, Config{Version: "v1"}).Sum([]byte("ab")); a[4:] == b[3:] {
		t.Errorf("%s and %s: want two sums", a, b)
	}
}

func TestKeyIsInTheSum(t *testing.T) {
	key := bytes.Repeat([]byte("k"), 16)
	plain, keyed := newScheme(t, Config{}), newScheme(t, Config{Key: key})
	other := newScheme(t, Config{Key: bytes.Repeat([]byte("l"), 16)})
	a, b, c := plain.Sum([]byte("a")), keyed.Sum([]byte("a")), other.Sum([]byte("a"))
	if a == b || b == c || a == c {
		t.Errorf("without a key %s, with one %s, with another %s", a, b, c)
	}
	key[0] = 'x'
	if now := keyed.Sum([]byte("a")); now != b {
		t.Errorf("the caller changed the key, and the sum became %s", now)
	}
}

func TestEqualIsOnlyTheSameFingerprint(t *testing.T) {
	scheme := newScheme(t, Config{})
	p := scheme.Sum([]byte("a"))
	if !p.Equal(scheme.Sum([]byte("a"))) {
		t.Error("not equal to itself")
	}
	for i := range p {
		q := []byte(p)
		q[i]++
		if p.Equal(Print(q)) {
			t.Errorf("equal to %s", q)
		}
	}
	for _, q := range []Print{"", p[:len(p)-1], p + "0", p[3:], Print(strings.ToUpper(string(p)))} {
		if p.Equal(q) || q.Equal(p) {
			t.Errorf("equal to %q", q)
		}
	}
	if Print("").Equal("") {
		t.Error("two requests of which nothing is known are equal")
	}
}

func TestConfigOutOfRangeIsRefusedByName(t *testing.T) {
	for _, c := range []struct {
		field  string
		config Config
	}{
		{"Config.Version", Config{Version: "v:1"}},
		{"Config.Version", Config{Version: "v 1"}},
		{"Config.Version", Config{Version: "v1\n"}},
		{"Config.Version", Config{Version: "é"}},
		{"Config.Version", Config{Version: strings.Repeat("v", 33)}},
		{"Config.Key", Config{Key: []byte{}}}, // a setting that is missing
		{"Config.Key", Config{Key: make([]byte, 15)}},
		{"Config.Limits.Bytes", Config{Limits: Limits{Bytes: -1}}},
		{"Config.Limits.Depth", Config{Limits: Limits{Depth: 1001}}},
	} {
		if _, err := New(c.config); err == nil || !strings.HasPrefix(err.Error(), c.field+" ") {
			t.Errorf("%+v: %v, want one that begins with %s", c.config, err, c.field)
		}
	}
	newScheme(t, Config{Version: "Orders_2026-11.b", Key: make([]byte, 16), Limits: Limits{Bytes: 1, Depth: 1}})
}
