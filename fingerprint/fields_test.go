package fingerprint

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func mustSum(t *testing.T, f *Fields) Print {
	t.Helper()
	p, err := f.Sum()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFieldsAreTheObjectWithThem(t *testing.T) {
	scheme := newScheme(t, Config{})
	coupon := "WINTER"
	fields := scheme.Fields().
		String("productId", "4\"2\x00é😀").
		Int("quantity", math.MinInt64+1).
		Decimal("price", "012.500e1"[1:]).
		Bool("gift", true).
		Null("note").
		OptString("couponId", &coupon, "").
		OptString("currency", nil, "EUR").
		JSON("items", []byte(` [{"sku": "b", "count": 2.0}] `)).
		String("", "").
		String("\uE000", "a").String("😀", "b")
	const text = `{"productId":"4\"2\u0000é😀","quantity":-9223372036854775807,"price":125,"gift":true,"note":null,
		"couponId":"WINTER","currency":"EUR","items":[{"sku":"b","count":2}],"":"","😀":"b","\ue000":"a"}`
	want, err := scheme.JSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := mustSum(t, fields); got != want {
		object, _ := fields.Canonical()
		t.Errorf("got %s, of %s, want that of %s", got, object, text)
	}
	if again := mustSum(t, fields); again != want {
		t.Errorf("the second sum is %s, the first was %s", again, want)
	}
	if got, err := scheme.Fields().Canonical(); err != nil || string(got) != "{}" {
		t.Errorf("no fields: %s, %v", got, err)
	}
}

func TestOrderOfFieldsDoesNotMatter(t *testing.T) {
	scheme := newScheme(t, Config{})
	a := mustSum(t, scheme.Fields().String("productId", "42").Int("quantity", 1))
	b := mustSum(t, scheme.Fields().Int("quantity", 1).String("productId", "42"))
	if a != b {
		t.Errorf("%s and %s", a, b)
	}
}

// A field that is there, empty, null or not there: all differ, and so do kinds.
func TestKindsOfFieldsDiffer(t *testing.T) {
	scheme := newScheme(t, Config{})
	prints := map[Print]string{}
	for what, f := range map[string]*Fields{
		"not there":   scheme.Fields(),
		"empty":       scheme.Fields().String("a", ""),
		"null":        scheme.Fields().Null("a"),
		`"null"`:      scheme.Fields().String("a", "null"),
		"1":           scheme.Fields().Int("a", 1),
		`"1"`:         scheme.Fields().String("a", "1"),
		"true":        scheme.Fields().Bool("a", true),
		"false":       scheme.Fields().Bool("a", false),
		`"true"`:      scheme.Fields().String("a", "true"),
		"[]":          scheme.Fields().JSON("a", []byte("[]")),
		"{}":          scheme.Fields().JSON("a", []byte("{}")),
		"another":     scheme.Fields().String("b", ""),
		"both":        scheme.Fields().String("a", "").String("b", ""),
		"in one":      scheme.Fields().String("a", `","b":"`),
		"exact":       scheme.Fields().Decimal("a", "1234567890123456789"),
		"exact too":   scheme.Fields().Int("a", 1234567890123456788),
		"as a string": scheme.Fields().String("a", "1234567890123456789"),
	} {
		p := mustSum(t, f)
		if other, there := prints[p]; there {
			t.Errorf("%s and %s have one fingerprint", what, other)
		}
		prints[p] = what
	}
}

func TestEqualFieldsOfDifferentSpellingAreEqual(t *testing.T) {
	scheme := newScheme(t, Config{})
	euro, empty := "EUR", ""
	for _, c := range []struct {
		what string
		a, b *Fields
	}{
		{"a default and what it means", scheme.Fields().OptString("c", nil, "EUR"), scheme.Fields().OptString("c", &euro, "USD")},
		{"a string and an optional one", scheme.Fields().String("c", ""), scheme.Fields().OptString("c", &empty, "EUR")},
		{"12.5 and 12.50", scheme.Fields().Decimal("c", "12.5"), scheme.Fields().Decimal("c", "12.50")},
		{"a decimal and an integer", scheme.Fields().Decimal("c", "-10e0"), scheme.Fields().Int("c", -10)},
	} {
		if a, b := mustSum(t, c.a), mustSum(t, c.b); a != b {
			t.Errorf("%s: %s and %s", c.what, a, b)
		}
	}
}

func TestEveryRefusedFieldIsNamed(t *testing.T) {
	scheme := newScheme(t, Config{Limits: Limits{Depth: 1}})
	for name, c := range map[string]struct {
		fields *Fields
		err    error
	}{
		"twice":   {scheme.Fields().Int("twice", 1).Int("twice", 1), ErrDuplicate},
		"comma":   {scheme.Fields().Decimal("comma", "1,50"), ErrSyntax},
		"empty":   {scheme.Fields().Decimal("empty", ""), ErrSyntax},
		"quoted":  {scheme.Fields().Decimal("quoted", `"1"`), ErrSyntax},
		"spaced":  {scheme.Fields().Decimal("spaced", " 1"), ErrSyntax},
		"plus":    {scheme.Fields().Decimal("plus", "+1"), ErrSyntax},
		"huge":    {scheme.Fields().Decimal("huge", "1e1000000000000000"), ErrRange},
		"latin":   {scheme.Fields().String("latin", "caf\xe9"), ErrUnicode},
		"json":    {scheme.Fields().JSON("json", []byte("{")), ErrSyntax},
		"deep":    {scheme.Fields().JSON("deep", []byte("[[]]")), ErrTooDeep},
		`\xff`:    {scheme.Fields().Int("\xff", 1), ErrUnicode},
		"earlier": {scheme.Fields().Decimal("earlier", "x").Int("fine", 1), ErrSyntax},
	} {
		p, err := c.fields.Sum()
		if p != "" || !errors.Is(err, c.err) || !strings.Contains(err.Error(), `field "`+name+`": `) {
			t.Errorf("%s: %q, %v, want %v", name, p, err, c.err)
		}
	}
	_, err := scheme.Fields().Decimal("price", "x").Int("fine", 1).String("note", "\xff").Sum()
	if !errors.Is(err, ErrSyntax) || !errors.Is(err, ErrUnicode) || strings.Contains(err.Error(), "fine") {
		t.Errorf("two fields are wrong: %v", err)
	}
}
