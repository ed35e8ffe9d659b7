package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress tells people how far a phase is: a line that is rewritten where
// that works, else a new line now and then.
type progress struct {
	out      io.Writer
	terminal bool
	pace     func() <-chan time.Time // when to say something next
}

// newProgress writes to w as that can take it.
func newProgress(w io.Writer) progress {
	p := progress{out: w}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	every := 3 * time.Second
	if p.terminal {
		every = 200 * time.Millisecond
	}
	p.pace = func() <-chan time.Time { return time.After(every) }
	return p
}

// follow reports on a phase until done is closed.
func (p progress) follow(ph phase, recs []*recorder, done <-chan struct{}) {
	began := time.Now()
	for {
		select {
		case <-done:
			if p.terminal {
				fmt.Fprint(p.out, "\r\x1b[K")
			}
			return
		case <-p.pace():
			line := progressLine(ph, cyclesOf(recs), time.Since(began))
			if p.terminal {
				fmt.Fprint(p.out, "\r\x1b[K"+line)
			} else {
				fmt.Fprintln(p.out, line)
			}
		}
	}
}

func cyclesOf(recs []*recorder) (n int64) {
	for _, r := range recs {
		n += r.ok.Load()
	}
	return n
}

func progressLine(ph phase, cycles int64, passed time.Duration) string {
	rate := float64(cycles) / max(passed.Seconds(), 1e-3)
	if ph.cycles > 0 {
		return fmt.Sprintf("%s keys: %d of %d cycles, %.0f/s", ph.name, cycles, ph.cycles, rate)
	}
	return fmt.Sprintf("%s keys: %.1f of %v, %d cycles, %.0f/s", ph.name, passed.Seconds(), ph.length, cycles, rate)
}
