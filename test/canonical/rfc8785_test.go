// Package canonical compares the canonical form of package fingerprint with that
// of RFC 8785, as another's library makes it. The two are the same but for
// numbers that a double does not hold with all their digits. It has a module of
// its own, so that nobody who imports the lock inherits the library.
package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/quorumlock/quorumlock/fingerprint"
)

// exact reports whether doubles hold every number of a valid text: whether the
// shortest digits that make the double are the number.
func exact(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return true
		}
		number, ok := token.(json.Number)
		if !ok {
			continue
		}
		f, err := number.Float64()
		if err != nil {
			return false
		}
		if f == 0 { // of 1e-999999999 there must be no big.Rat
			mantissa, _, _ := strings.Cut(strings.ToLower(string(number)), "e")
			if strings.ContainsAny(mantissa, "123456789") {
				return false
			}
			continue
		}
		want, _ := new(big.Rat).SetString(string(number))
		got, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', -1, 64))
		if want.Cmp(got) != 0 {
			return false
		}
	}
}

// compare checks that both accept a text and make the same of it, or that both
// refuse it, and reports whether they accepted.
func compare(t *testing.T, text []byte) bool {
	t.Helper()
	if json.Valid(text) && !exact(text) {
		return false
	}
	ours, err := fingerprint.Canonical(nil, text, fingerprint.Limits{Depth: 1000})
	if errors.Is(err, fingerprint.ErrTooDeep) || errors.Is(err, fingerprint.ErrTooLarge) {
		return false
	}
	theirs, theirErr := jcs.Transform(text)
	if (err == nil) != (theirErr == nil) {
		t.Fatalf("%q: here %q, %v; there %q, %v", text, ours, err, theirs, theirErr)
	}
	if err == nil && !bytes.Equal(ours, theirs) {
		t.Fatalf("%q: here %q, there %q", text, ours, theirs)
	}
	return err == nil
}

// grow makes up a text. Numbers have at most 15 digits.
func grow(random *rand.Rand, levels int) string {
	space := func() string { return []string{"", "", " ", "\n\t", "\r"}[random.IntN(5)] }
	text := func() string {
		s := `"`
		for range random.IntN(5) {
			s += []string{"a", "b", "A", "é", "€", "\uE000", "\uFFFD", "\uFFFF", "😀", "\U0010FFFF", "/", "\x7f", "\u2028",
				`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0000`, `\u001F`, `\u0061`, `\u00E9`, `\uffff`, `\ud83d\uDE00`}[random.IntN(27)]
		}
		return s + `"`
	}
	kinds := 6
	if levels > 0 {
		kinds = 12
	}
	var s string
	switch kind := random.IntN(kinds); kind {
	case 0:
		s = []string{"null", "true", "false"}[random.IntN(3)]
	case 1, 2:
		s = text()
	case 3:
		s = strconv.FormatInt(random.Int64N(1e15)>>random.IntN(50), 10)
	case 4, 5:
		s = fmt.Sprintf("%s%d.%0*de%d", []string{"", "-"}[random.IntN(2)],
			random.IntN(1000), 1+random.IntN(12), random.IntN(10), random.IntN(580)-290)
	case 6, 7, 8:
		var elements []string
		for range random.IntN(4) {
			elements = append(elements, grow(random, levels-1))
		}
		s = "[" + space() + strings.Join(elements, ",") + "]"
	default:
		var members []string
		for range random.IntN(6) {
			members = append(members, space()+text()+space()+":"+grow(random, levels-1))
		}
		s = "{" + space() + strings.Join(members, ",") + "}"
	}
	return space() + s + space()
}

func TestBytesAreThoseOfRFC8785(t *testing.T) {
	accepted := 0
	for seed := range uint64(5000) {
		if compare(t, []byte(grow(rand.New(rand.NewPCG(seed, 1)), 4))) {
			accepted++
		}
	}
	if accepted < 2500 {
		t.Errorf("only %d texts were accepted", accepted)
	}
}

// Most of these are no longer JSON, and both say so.
func TestBrokenTextsAreRefusedByBoth(t *testing.T) {
	accepted, tried := 0, 5000
	for seed := range uint64(tried) {
		random := rand.New(rand.NewPCG(seed, 2))
		text := []byte(grow(random, 3))
		i := random.IntN(len(text))
		switch random.IntN(3) {
		case 0:
			text[i] = byte(random.IntN(256))
		case 1:
			text = append(text[:i], text[i+1:]...)
		case 2:
			text = text[:i]
		}
		if compare(t, text) {
			accepted++
		}
	}
	if accepted == 0 || accepted > tried*3/4 {
		t.Errorf("%d of %d were accepted", accepted, tried)
	}
}

// Why there is a form of our own. Should this fail one day because the library
// tells the two apart, ask whether there still has to be.
func TestIdsOfNineteenDigitsAreOneNumberInRFC8785(t *testing.T) {
	a, b := []byte("1234567890123456789"), []byte("1234567890123456788")
	theirA, errA := jcs.Transform(a)
	theirB, errB := jcs.Transform(b)
	if err := errors.Join(errA, errB); err != nil || !bytes.Equal(theirA, theirB) {
		t.Errorf("there: %s and %s, %v", theirA, theirB, err)
	}
	ourA, errA := fingerprint.Canonical(nil, a, fingerprint.Limits{})
	ourB, errB := fingerprint.Canonical(nil, b, fingerprint.Limits{})
	if err := errors.Join(errA, errB); err != nil || bytes.Equal(ourA, ourB) {
		t.Errorf("here: %s and %s, %v", ourA, ourB, err)
	}
}

func FuzzBytesAreThoseOfRFC8785(f *testing.F) {
	for seed := range uint64(20) {
		f.Add([]byte(grow(rand.New(rand.NewPCG(seed, 3)), 3)))
	}
	f.Add([]byte(`[1e400,1e-400,-0,1e21,01,"\ud83d",{"a":1,"\u0061":1}]`))
	f.Fuzz(func(t *testing.T, text []byte) { compare(t, text) })
}
