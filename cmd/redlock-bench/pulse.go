package main

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// pulse is what all workers have done since it was last taken. Workers write to it
// while they work, so it is there only in a drill, which is about what happens when
// and not about how fast it can be. A nil pulse takes no notice.
type pulse struct {
	mu     sync.Mutex // guards what follows
	own    *hdrhistogram.Histogram
	shared *hdrhistogram.Histogram
	failed [failures]int64
}

func newPulse() *pulse {
	return &pulse{
		own:    hdrhistogram.New(int64(shortestStep), int64(longestStep), stepDigits),
		shared: hdrhistogram.New(int64(shortestStep), int64(longestStep), stepDigits),
	}
}

// granted takes note of a lease that took so long to get, on a key that is waited
// for or on one of the worker's own.
func (p *pulse) granted(waited bool, took time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.own
	if waited {
		h = p.shared
	}
	h.RecordValue(int64(min(took, longestStep))) // never out of range
}

func (p *pulse) failure(f failure) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed[f]++
}

// beat is a stretch of the timeline, about a second long. As JSON its field names
// stay what they are; fields may be added.
type beat struct {
	UntilS    float64          `json:"until_s"` // since the load began; from where the last ended
	Grants    int64            `json:"grants"`
	Rate      float64          `json:"grants_per_s"`
	P99Own    float64          `json:"p99_own_us,omitempty"`    // of acquires on keys that nobody else wants
	P99Shared float64          `json:"p99_shared_us,omitempty"` // on keys that are waited for
	Failed    map[string]int64 `json:"failed,omitempty"`        // by failureNames, those there were
	AtFault   []string         `json:"at_fault,omitempty"`      // nodes that had a fault at its end
}

// take begins a new pulse and returns what the old one had, which lasted from one
// moment to another.
func (p *pulse) take(from, until time.Duration) beat {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := beat{UntilS: until.Seconds(), Grants: p.own.TotalCount() + p.shared.TotalCount(), Failed: make(map[string]int64)}
	if until > from {
		b.Rate = float64(b.Grants) / (until - from).Seconds()
	}
	us := func(h *hdrhistogram.Histogram) float64 { return float64(h.ValueAtPercentile(99)) / 1000 }
	b.P99Own, b.P99Shared = us(p.own), us(p.shared)
	for i, n := range p.failed {
		if n > 0 {
			b.Failed[failureNames[i]] = n
		}
	}
	p.own.Reset()
	p.shared.Reset()
	p.failed = [failures]int64{}
	return b
}
