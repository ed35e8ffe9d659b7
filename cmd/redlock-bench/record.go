package main

import (
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/quorumlock/quorumlock/internal/history"
)

// step is one of the times a cycle consists of.
type step int

const (
	stepAcquire step = iota // how long acquire took, waiting for the key included
	stepHold                // from then until release was called
	stepRelease             // how long release took
	stepCycle               // all of it
	steps                   // how many there are
)

// stepNames are the words for steps, in the text and in JSON.
var stepNames = [steps]string{"acquire", "hold", "release", "cycle"}

// Latencies are kept to two digits: about 1 %, which is closer than two runs
// come to each other, and small enough for thousands of workers.
const (
	shortestStep = time.Microsecond
	longestStep  = 10 * time.Minute
	stepDigits   = 2
)

// recorder is what one worker has seen. Only that worker writes to it, so that
// keeping statistics takes no lock from the work; they are merged afterwards.
type recorder struct {
	took       [steps]*hdrhistogram.Histogram // of cycles that succeeded
	failed     [failures]int64
	firstError [failures]error
	cutShort   int64 // cycles that the end of the phase interrupted
	holds      []history.Hold
	appends    []history.Append // to the guarded store
	live       *pulse           // what is seen of it meanwhile; nil where nobody looks

	ok atomic.Int64 // cycles that succeeded; the progress line reads it
	_  [64]byte     // no other worker's data on the cache line of ok
}

func newRecorder() *recorder {
	r := &recorder{}
	for i := range r.took {
		r.took[i] = hdrhistogram.New(int64(shortestStep), int64(longestStep), stepDigits)
	}
	return r
}

func (r *recorder) success(took [steps]time.Duration) {
	for i, d := range took {
		// Never out of range, and that is the only error.
		r.took[i].RecordValue(int64(min(d, longestStep)))
	}
	r.ok.Add(1)
}

func (r *recorder) failure(f failure, err error) {
	r.failed[f]++
	r.live.failure(f)
	if r.firstError[f] == nil {
		r.firstError[f] = err
	}
}

// merge adds what another has seen.
func (r *recorder) merge(o *recorder) {
	for i := range r.took {
		r.took[i].Merge(o.took[i])
	}
	for i := range r.failed {
		r.failed[i] += o.failed[i]
		if r.firstError[i] == nil {
			r.firstError[i] = o.firstError[i]
		}
	}
	r.cutShort += o.cutShort
	r.holds = append(r.holds, o.holds...)
	r.appends = append(r.appends, o.appends...)
	r.ok.Add(o.ok.Load())
}
