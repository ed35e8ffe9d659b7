package trial

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept to two digits: about 1 %, which is closer than two runs
// come to each other.
const (
	shortest = time.Microsecond
	longest  = 10 * time.Minute
	digits   = 2
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(shortest), int64(longest), digits)
}

// latencyOf is what a histogram says; nil for an empty one.
func latencyOf(h *hdrhistogram.Histogram) *Latency {
	if h.TotalCount() == 0 {
		return nil
	}
	at := func(q float64) float64 { return micros(time.Duration(h.ValueAtPercentile(q))) }
	return &Latency{P50: at(50), P99: at(99), P999: at(99.9), Max: micros(time.Duration(h.Max()))}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// percentile is the smallest of some times that so many hundredths of them do
// not exceed. It is 0 of none. sorted is in order.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(float64(len(sorted))*p/100+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// exactly is the latency of some times, which it sorts; nil of none.
func exactly(times []time.Duration) *Latency {
	if len(times) == 0 {
		return nil
	}
	slices.Sort(times)
	at := func(p float64) float64 { return micros(percentile(times, p)) }
	return &Latency{P50: at(50), P99: at(99), P999: at(99.9), Max: micros(times[len(times)-1])}
}

// jain is how evenly something was shared: 1 if all have the same, 1/n if one of
// n has it all. It is 0 if there was nothing to share. (R. Jain, D. Chiu, W. Hawe,
// "A quantitative measure of fairness and discrimination", 1984.)
func jain(shares []int64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
