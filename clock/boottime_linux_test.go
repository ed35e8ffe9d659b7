package clock

import (
	"testing"
	"time"
)

func TestBootSampleIsCarriedOnOnlyWhileAwake(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name       string
		mono, wall time.Duration
		want       bool
	}{
		{"awake", 9 * ms, 9 * ms, true},
		{"wall clock slewed", 9 * ms, 9*ms + 500*time.Microsecond, true},
		{"too old", bootAge, bootAge, false},
		{"before the sample", -1, -1, false},
		{"suspended", ms, time.Hour, false},
		{"suspended for a moment", ms, 3 * ms, false},
		{"wall clock stepped back", ms, -time.Hour, false},
	} {
		if got := carries(c.mono, c.wall); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestBootClockGoesWithTheMonotonicOne(t *testing.T) {
	var last Instant
	for range 100000 { // through many samples
		now := System{}.Now()
		if now.boot == 0 {
			t.Fatal("no CLOCK_BOOTTIME")
		}
		if !last.IsZero() && now.Upper(last)-now.Lower(last) > time.Second {
			t.Fatalf("upper %v, lower %v in a machine that was awake", now.Upper(last), now.Lower(last))
		}
		last = now
	}
}
