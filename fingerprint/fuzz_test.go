package fingerprint

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// sameValue compares two trees, numbers by their value.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name := range a {
			if other, there := b[name]; !there || !sameValue(a[name], other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(string(a), string(b))
	}
	return reflect.DeepEqual(a, b)
}

func sameNumber(a, b string) bool {
	signA, digitsA, exponentA := parts(a)
	signB, digitsB, exponentB := parts(b)
	if digitsA == "0" || digitsB == "0" {
		return digitsA == digitsB
	}
	// Large exponents are too large for big, and their difference never is: with
	// more than the digits account for, the numbers differ.
	distance := exponentA - exponentB
	if max(distance, -distance) > int64(len(a)+len(b)) {
		return false
	}
	x, _ := new(big.Int).SetString(signA+digitsA, 10)
	y, _ := new(big.Int).SetString(signB+digitsB, 10)
	shift := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(distance, -distance)), nil)
	if distance > 0 {
		x.Mul(x, shift)
	} else {
		y.Mul(y, shift)
	}
	return x.Cmp(y) == 0
}

// repeats reports whether an object of a valid text has a name twice.
func repeats(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value func() bool
	value = func() (found bool) {
		opening, _ := d.Token()
		names := map[string]bool{}
		for opening == json.Delim('{') && d.More() {
			name, _ := d.Token()
			found = found || names[name.(string)]
			names[name.(string)] = true
			found = value() || found
		}
		for opening == json.Delim('[') && d.More() {
			found = value() || found
		}
		if _, ok := opening.(json.Delim); ok {
			d.Token()
		}
		return found
	}
	return value()
}

func FuzzCanonical(f *testing.F) {
	for _, text := range []string{
		`{"productId": "42", "quantity": 1, "addressVersion": "7", "couponId": null}`,
		`{"b":{"z":1,"y":[{"d":1,"c":2}]},"a":null}`,
		`[1, 1.0, 1e0, 100e-2, -0, 0.000001, 1e-7, 1e20, 1e21, 1234567890123456789]`,
		`[1e999999999, -1e-999999999, 1e999999999999999, 0e99999999999999999999]`,
		`1e1000000000000000`,
		`{"a":1,"\u0061":2}`,
		`"\ud83d\ude00 \ud83d"`,
		`{"\uffff":1,"😀":2,"\ue000":3,"\ud7ff":4,"z":5}`,
		`"\"\\\/\b\f\n\r\t\u0000\u001F"`,
		"\"\xff\xc0\xaf\xed\xa0\x80\"",
		"\ufeff{}",
		"1\x00",
		strings.Repeat("[", 100),
		strings.Repeat(`{"":`, 30) + "1" + strings.Repeat("}", 30),
	} {
		f.Add([]byte(text), uint64(1))
	}
	limits := Limits{Bytes: 1 << 16, Depth: 32}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		out, err := Canonical(nil, text, limits)
		valid := json.Valid(text)
		var refused *InputError
		switch {
		case err == nil:
		case !errors.As(err, &refused):
			t.Fatalf("%q: %v is no InputError", text, err)
		case refused.Offset < 0 || refused.Offset > len(text):
			t.Fatalf("%q: %v is out of the text", text, err)
		case valid && errors.Is(err, ErrSyntax):
			t.Fatalf("%q: %v, but it is valid", text, err)
		case valid && errors.Is(err, ErrDuplicate) && !repeats(text):
			t.Fatalf("%q: %v, but it has no name twice", text, err)
		case valid && errors.Is(err, ErrUnicode) && utf8.Valid(text) && !bytes.Contains(bytes.ToLower(text), []byte(`\ud`)):
			t.Fatalf("%q: %v, but it is Unicode", text, err)
		}
		if err != nil {
			return
		}
		if !valid || !utf8.Valid(text) || repeats(text) {
			t.Fatalf("%q: accepted", text)
		}
		if len(out) > 6*len(text) {
			t.Fatalf("%q: %d bytes became %d", text, len(text), len(out))
		}
		tree := decode(t, text)
		if !sameValue(tree, decode(t, out)) {
			t.Fatalf("%q: became %q", text, out)
		}
		if again := canonical(t, string(out)); again != string(out) {
			t.Fatalf("%q: became %q, and that %q", text, out, again)
		}
		random := rand.New(rand.NewPCG(seed, 0))
		other := respell(random, tree)
		if len(other) < limits.Bytes && canonical(t, other) != string(out) {
			t.Fatalf("%q: became %q, but spelled as %q it is %q", text, out, other, canonical(t, other))
		}
		changed := respell(random, change(random, tree))
		if len(changed) < limits.Bytes && canonical(t, changed) == string(out) {
			t.Fatalf("%q and %q differ, and are both %q", text, changed, out)
		}
	})
}

// Wherever a text is cut into parts, each cut is another fingerprint.
func FuzzSum(f *testing.F) {
	f.Add([]byte("abc"), 0, 1)
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0, 8)
	f.Add([]byte{}, 0, 0)
	scheme, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte, i, j int) {
		if i < 0 || i > len(text) || j < 0 || j > len(text) {
			return
		}
		a, b := scheme.Sum(text[:i], text[i:]), scheme.Sum(text[:j], text[j:])
		if a.Equal(b) != (i == j) {
			t.Fatalf("%q cut at %d and at %d: %s and %s", text, i, j, a, b)
		}
		if whole := scheme.Sum(text); whole.Equal(a) {
			t.Fatalf("%q and that cut at %d: %s", text, i, a)
		}
	})
}
