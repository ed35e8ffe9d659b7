package fingerprint

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func TestNumbersHaveOneForm(t *testing.T) {
	for want, spellings := range map[string]string{
		"0":                            "0 -0 0.0 -0.00 0e0 -0e5 0e99999999999999999999 0.0e-99999999999999999999",
		"1":                            "1 1.0 1.00 1e0 1E0 1e+0 1e-0 100e-2 0.1e1 0.01E+2 10e-1 1e00000000000000000000",
		"-1":                           "-1 -1.0 -100e-2",
		"10":                           "10 1e1 1e01 10.0 0.1e2",
		"12.5":                         "12.5 12.50 125e-1 0.125e2 1.25e1",
		"0.1":                          "0.1 1e-1 0.10 10e-2",
		"0.000001":                     "0.000001 1e-6 0.1e-5 1000e-9",
		"1e-7":                         "1e-7 0.0000001 0.1e-6",
		"1.5e-7":                       "1.5e-7 0.00000015",
		"-1.25e-10":                    "-1.25e-10 -125e-12",
		"100000000000000000000":        "1e20 100000000000000000000 1000e17",
		"123456789012345678901":        "123456789012345678901 1234567890123456789.01e2",
		"1e+21":                        "1e21 1000000000000000000000 1E+21 1e021",
		"1.234567890123456789012e+21":  "1234567890123456789012 1234567890123456789012.0",
		"123456789.123456789123456789": "123456789.123456789123456789 123456789123456789.123456789e-9",
		"1e+400":                       "1e400 10e399",
		"1e-400":                       "1e-400 0.1e-399",
		"1e+999999999":                 "1e999999999 10e999999998",
		"1e+999999999999999":           "1e999999999999999 0.001e1000000000000002",
		"-1e-999999999999999":          "-1e-999999999999999 -1000e-1000000000000002",
	} {
		for in := range strings.FieldsSeq(spellings) {
			if got := canonical(t, in); got != want {
				t.Errorf("%s: got %s, want %s", in, got, want)
			}
		}
	}
}

// Doubles cannot tell these apart.
func TestNumbersThatAreOneDoubleDiffer(t *testing.T) {
	for _, pair := range [][2]string{
		{"1234567890123456789", "1234567890123456788"},
		{"9007199254740992", "9007199254740993"},
		{"18446744073709551615", "18446744073709551616"},
		{"0.1", "0.1000000000000000055511151231257827021181583404541015625"},
		{"1e400", "1e401"},
		{"1e-400", "0"},
		{"1.7976931348623157e308", "1e400"},
		{"100000000000000000000000000000000", "100000000000000000000000000000001"},
	} {
		a, b := canonical(t, pair[0]), canonical(t, pair[1])
		if a == b {
			t.Errorf("%s and %s are both %s", pair[0], pair[1], a)
		}
		x, _ := strconv.ParseFloat(pair[0], 64)
		y, _ := strconv.ParseFloat(pair[1], 64)
		if x != y && !(math.IsInf(y, 1) && pair[1] == "1e400") {
			t.Errorf("%s and %s are two doubles: no example", pair[0], pair[1])
		}
	}
}

func TestExponentsOutOfRangeAreRefused(t *testing.T) {
	for _, in := range []string{
		"1e1000000000000000", "10e999999999999999", "1e-1000000000000000", "0.1e-999999999999999",
		"1e9223372036854775807", "1e9223372036854775808", "1e18446744073709551616", "-1e-9223372036854775809",
		"1e36893488147419103232", "1e" + strings.Repeat("9", 100_000), "1e-" + strings.Repeat("9", 100_000),
	} {
		var refused *InputError
		if out, err := Canonical(nil, []byte(in), Limits{}); !errors.As(err, &refused) || !errors.Is(err, ErrRange) {
			t.Errorf("%.30s: got %s, %v", in, out, err)
		}
	}
}

// Whatever an exponent says, memory is for the text that came.
func TestHugeExponentsAreNotExpanded(t *testing.T) {
	in := []byte("[" + strings.Repeat("1e999999999,-1.5e-999999999,1e20,1e-6,", 100) + "0e999999999]")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out, err := Canonical(nil, in, Limits{})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) > 6*len(in) {
		t.Errorf("%d bytes became %d", len(in), len(out))
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes took %d", len(in), used)
	}
}

// Two spellings have one form exactly if they are the same number, by the
// arithmetic of math/big.
func TestNumbersAreEqualIfTheirValuesAre(t *testing.T) {
	random := rand.New(rand.NewPCG(8785, 1))
	digits := func(most int) string {
		s := make([]byte, 1+random.IntN(most))
		for i := range s {
			s[i] = "0001259"[random.IntN(7)]
		}
		return string(s)
	}
	spell := func() string {
		s := strings.TrimLeft(digits(3), "0")
		if s == "" {
			s = "0"
		}
		if random.IntN(4) == 0 {
			s = "-" + s
		}
		if random.IntN(2) == 0 {
			s += "." + digits(3)
		}
		if random.IntN(2) == 0 {
			s += "e" + strconv.Itoa(random.IntN(7)-3)
		}
		return s
	}
	equal := 0
	for range 10_000 {
		a, b := spell(), spell()
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		same := x.Cmp(y) == 0
		if same && a != b {
			equal++
		}
		if got := canonical(t, a) == canonical(t, b); got != same {
			t.Fatalf("%s and %s: one form: %v, one number: %v", a, b, got, same)
		}
		if z, ok := new(big.Rat).SetString(canonical(t, a)); !ok || z.Cmp(x) != 0 {
			t.Fatalf("%s became %s", a, canonical(t, a))
		}
	}
	if equal < 50 {
		t.Errorf("only %d of the pairs were two spellings of a number", equal)
	}
}

// The shortest digits that make a double, which is how every program writes it,
// have the form of RFC 8785. For single numbers encoding/json writes that form.
func TestDoublesHaveTheFormOfRFC8785(t *testing.T) {
	random := rand.New(rand.NewPCG(8785, 2))
	check := func(f float64) {
		if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 {
			return
		}
		want, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []string{string(want), strconv.FormatFloat(f, 'e', -1, 64), strconv.FormatFloat(f, 'f', -1, 64)} {
			if got := canonical(t, in); got != string(want) {
				t.Fatalf("%s: got %s, want %s", in, got, want)
			}
		}
	}
	for range 3_000 {
		check(math.Float64frombits(random.Uint64()))
		check(float64(random.Int64N(1 << 54)))
		check(float64(random.IntN(1_000_000)) * math.Pow10(random.IntN(40)-20))
	}
	for e := -324; e <= 308; e++ {
		check(math.Pow10(e))
		check(-math.Nextafter(math.Pow10(e), 0))
	}
}
