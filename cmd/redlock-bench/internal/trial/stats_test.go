package trial

import (
	"testing"
	"time"
)

func TestPercentileIsTheSmallestThatCoversEnough(t *testing.T) {
	times := []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for p, want := range map[float64]time.Duration{0: 1, 10: 1, 50: 5, 51: 6, 90: 9, 99: 10, 100: 10} {
		if got := percentile(times, p); got != want {
			t.Errorf("p%v: %d, want %d", p, got, want)
		}
	}
	if got := percentile(nil, 99); got != 0 {
		t.Errorf("of none: %d", got)
	}
	if got := percentile([]time.Duration{7}, 1); got != 7 {
		t.Errorf("of one: %d", got)
	}
}

func TestExactLatencyIsOfTimesInAnyOrder(t *testing.T) {
	l := exactly([]time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond})
	if *l != (Latency{P50: 2000, P99: 3000, P999: 3000, Max: 3000}) {
		t.Errorf("%+v", *l)
	}
	if exactly(nil) != nil {
		t.Error("a latency of nothing")
	}
}

func TestJain(t *testing.T) {
	for _, test := range []struct {
		shares []int64
		want   float64
	}{
		{[]int64{5, 5, 5, 5}, 1},
		{[]int64{8, 0, 0, 0}, 0.25},
		{[]int64{1, 3}, 0.8},
		{[]int64{0, 0}, 0},
		{nil, 0},
	} {
		if got := jain(test.shares); got < test.want-1e-12 || got > test.want+1e-12 {
			t.Errorf("%v: %v, want %v", test.shares, got, test.want)
		}
	}
}
