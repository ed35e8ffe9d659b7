package fingerprint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// decode reads a text with encoding/json, numbers as they are spelled.
func decode(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return tree
}

// respell writes a tree in one of the many ways that mean the same.
func respell(random *rand.Rand, tree any) string {
	space := func() string { return strings.Repeat(" \t\n\r", 2)[random.IntN(4):][:random.IntN(4)] }
	var s string
	switch v := tree.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		members := make([]string, len(names))
		for i, name := range names {
			members[i] = space() + respellString(random, name) + space() + ":" + respell(random, v[name])
		}
		s = "{" + strings.Join(members, ",") + space() + "}"
	case []any:
		elements := make([]string, len(v))
		for i := range v {
			elements[i] = respell(random, v[i])
		}
		s = "[" + strings.Join(elements, ",") + space() + "]"
	case string:
		s = respellString(random, v)
	case json.Number:
		s = respellNumber(random, string(v))
	default:
		s = fmt.Sprint(v)
		if v == nil {
			s = "null"
		}
	}
	return space() + s + space()
}

func respellString(random *rand.Rand, text string) string {
	s := `"`
	for _, c := range text {
		short := strings.IndexRune("\"\\/\b\f\n\r\t", c)
		switch {
		case short >= 0 && random.IntN(2) == 0:
			s += `\` + `"\/bfnrt`[short:short+1]
		case c < ' ' || c == '"' || c == '\\' || random.IntN(3) == 0:
			for _, unit := range utf16.Encode([]rune{c}) {
				s += fmt.Sprintf([]string{`\u%04x`, `\u%04X`}[random.IntN(2)], unit)
			}
		default:
			s += string(c)
		}
	}
	return s + `"`
}

// parts takes a number apart: it is digits × 10^exponent.
func parts(number string) (sign, digits string, exponent int64) {
	number = strings.ToLower(number)
	if strings.HasPrefix(number, "-") {
		sign, number = "-", number[1:]
	}
	number, e, _ := strings.Cut(number, "e")
	whole, fraction, _ := strings.Cut(number, ".")
	if digits = strings.TrimLeft(whole+fraction, "0"); digits == "" {
		return sign, "0", 0
	}
	exponent, _ = strconv.ParseInt(e, 10, 64)
	return sign, digits, exponent - int64(len(fraction))
}

func respellNumber(random *rand.Rand, number string) string {
	sign, digits, exponent := parts(number)
	if digits == "0" {
		sign = []string{"", "-"}[random.IntN(2)]
	}
	before, after := random.IntN(4), random.IntN(4)
	digits = strings.Repeat("0", before) + digits + strings.Repeat("0", after)
	exponent -= int64(after)
	point := random.IntN(len(digits) + 1)
	exponent += int64(len(digits) - point)
	s := strings.TrimLeft(digits[:point], "0")
	if s == "" {
		s = "0"
	}
	if point < len(digits) {
		s += "." + digits[point:]
	}
	if exponent != 0 || random.IntN(2) == 0 {
		s += []string{"e", "E"}[random.IntN(2)]
		if exponent < 0 {
			s += "-"
			exponent = -exponent
		} else {
			s += []string{"", "+"}[random.IntN(2)]
		}
		s += strings.Repeat("0", random.IntN(3)) + strconv.FormatInt(exponent, 10)
	}
	return sign + s
}

// change returns a tree that differs from tree in one place.
func change(random *rand.Rand, tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		changed := maps.Clone(v)
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || random.IntN(4) == 0 {
			changed["added"+strings.Join(names, "")] = nil
			return changed
		}
		name := names[random.IntN(len(names))]
		if random.IntN(4) == 0 {
			delete(changed, name)
		} else {
			changed[name] = change(random, v[name])
		}
		return changed
	case []any:
		changed := slices.Clone(v)
		if len(v) == 0 || random.IntN(4) == 0 {
			return append(changed, nil)
		}
		i := random.IntN(len(v))
		changed[i] = change(random, v[i])
		return changed
	case string:
		return v + string(rune('a'+random.IntN(26)))
	case json.Number:
		if random.IntN(4) == 0 {
			return string(v) // the same characters, in quotes
		}
		sign, digits, exponent := parts(string(v))
		return json.Number(fmt.Sprintf("%s%s.%de%d", sign, digits, 1+random.IntN(9), exponent))
	case bool:
		return !v
	}
	return []any{false, json.Number("0"), "", "null", []any{}, map[string]any{}}[random.IntN(6)]
}

// grow makes a tree up.
func grow(random *rand.Rand, levels int) any {
	text := func() string {
		var s string
		for range random.IntN(4) {
			s += string([]rune("abA \"\\/\b\n\x00\x1f\x7fé€\uD7FF\uE000\uFFFD\uFFFF😀\U0010FFFF")[random.IntN(20)])
		}
		return s
	}
	kinds := 5
	if levels > 0 {
		kinds = 9
	}
	switch random.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return random.IntN(2) == 0
	case 2:
		return text()
	case 3:
		return json.Number(strconv.FormatInt(random.Int64()>>random.IntN(64), 10))
	case 4:
		return json.Number(fmt.Sprintf("-%d.%de%d", random.IntN(100), random.IntN(1000), random.IntN(80)-40))
	case 5, 6:
		elements := make([]any, random.IntN(4))
		for i := range elements {
			elements[i] = grow(random, levels-1)
		}
		return elements
	}
	members := map[string]any{}
	for range random.IntN(6) {
		members[text()] = grow(random, levels-1)
	}
	return members
}

func TestSpellingDoesNotMatterAndValuesDo(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(8785, seed))
		tree := grow(random, 4)
		a, b, c := respell(random, tree), respell(random, tree), respell(random, change(random, tree))
		if canonical(t, a) != canonical(t, b) {
			t.Fatalf("seed %d: %s\nand %s\nare the same, and become %s\nand %s", seed, a, b, canonical(t, a), canonical(t, b))
		}
		if canonical(t, a) == canonical(t, c) {
			t.Fatalf("seed %d: %s\nand %s\ndiffer, and become %s", seed, a, c, canonical(t, a))
		}
	}
}
