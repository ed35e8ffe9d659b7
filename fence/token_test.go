package fence

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"testing"
)

func TestTokensOutsideTheRangeAreRefusedAndNotStale(t *testing.T) {
	for _, c := range []struct {
		token Token
		valid bool
	}{
		{math.MinInt64, false}, {-1, false}, {0, false},
		{1, true}, {1_800_000_000_000_000, true}, {1<<53 - 1, true},
		{1 << 53, false}, {math.MaxInt64, false},
	} {
		if c.token.Valid() != c.valid {
			t.Errorf("%s: Valid is %t", c.token, !c.valid)
		}
		var gate Gate
		ran := false
		err := gate.Do(c.token, func() error { ran = true; return nil })
		if (err == nil) != c.valid || ran != c.valid || errors.Is(err, ErrStale) {
			t.Errorf("%s: gate says %v, write ran: %t", c.token, err, ran)
		}
	}
}

func TestValidTokensStayExactAsDoubles(t *testing.T) {
	for _, token := range []Token{1, 1_800_000_000_000_001, largest - 1, largest} {
		if Token(float64(token)) != token {
			t.Errorf("%s is another number as a double", token)
		}
		if float64(token) == float64(token+1) {
			t.Errorf("%s and its successor are the same double", token)
		}
		text, err := json.Marshal(token)
		if err != nil || string(text) != strconv.FormatInt(int64(token), 10) {
			t.Errorf("%d in JSON: %s, %v", int64(token), text, err)
		}
		var back Token
		if err := json.Unmarshal(text, &back); err != nil || back != token {
			t.Errorf("%s back from JSON: %s, %v", text, back, err)
		}
		if token.String() != string(text) {
			t.Errorf("String is %s, JSON %s", token, text)
		}
	}
}
