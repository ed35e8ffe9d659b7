package clock

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadingsOfElapsedTime(t *testing.T) {
	for _, c := range []struct {
		name         string
		rate         float64
		do           func(c *Skewed)
		upper, lower time.Duration
	}{
		{"nothing", 1, func(*Skewed) {}, 10 * time.Second, 10 * time.Second},
		{"wall stepped forward", 1, func(c *Skewed) { c.Step(time.Hour) }, time.Hour + 10*time.Second, 10 * time.Second},
		{"wall stepped back", 1, func(c *Skewed) { c.Step(-time.Hour) }, 10 * time.Second, 10 * time.Second},
		{"suspended", 1, func(c *Skewed) { c.Suspend(time.Minute) }, 70 * time.Second, 10 * time.Second},
		{"suspended, and the wall stepped back", 1, func(c *Skewed) { c.Suspend(time.Minute); c.Step(-time.Hour) }, 70 * time.Second, 10 * time.Second},
		{"fast", 1.1, func(*Skewed) {}, 11 * time.Second, 11 * time.Second},
		{"slow", 0.5, func(*Skewed) {}, 5 * time.Second, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				skewed := NewSkewed(c.rate)
				before := skewed.Now()
				time.Sleep(4 * time.Second)
				c.do(skewed)
				time.Sleep(6 * time.Second)
				after := skewed.Now()
				if got := after.Upper(before); got != c.upper {
					t.Errorf("upper %v, want %v", got, c.upper)
				}
				if got := after.Lower(before); got != c.lower {
					t.Errorf("lower %v, want %v", got, c.lower)
				}
			})
		})
	}
}

func TestUpperIsNeverBelowLower(t *testing.T) {
	var last Instant
	for range 1000 {
		now := System{}.Now()
		if !last.IsZero() {
			if now.Upper(last) < now.Lower(last) || now.Lower(last) < 0 {
				t.Fatalf("upper %v, lower %v", now.Upper(last), now.Lower(last))
			}
		}
		last = now
	}
}

func TestWallFollowsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(1)
		before := c.Now().Wall()
		c.Step(-time.Hour)
		time.Sleep(time.Second)
		if got := c.Now().Wall().Sub(before); got != time.Second-time.Hour {
			t.Errorf("the wall clock moved by %v", got)
		}
	})
}

func TestTimersFollowTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(2)
		began := time.Now()
		timer := c.NewTimer(10 * time.Second)
		<-timer.C()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("10s on a clock twice as fast took %v", took)
		}
		c.SetRate(0.5)
		before := c.Now()
		timer.Reset(time.Second)
		<-timer.C()
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("then 1s on one half as fast ended at %v, want 7s", took)
		}
		if got := c.Now().Lower(before); got != time.Second {
			t.Errorf("it counted %v", got)
		}
		timer.Reset(time.Second)
		timer.Stop()
		time.Sleep(time.Minute)
		select {
		case <-timer.C():
			t.Error("a stopped timer fired")
		default:
		}
	})
}

func TestSkewedRefusesARateThatIsNotPositive(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("rate %v was taken", rate)
				}
			}()
			NewSkewed(rate)
		}()
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(1)
		began := time.Now()
		if err := Sleep(t.Context(), c, time.Second); err != nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Sleep(ctx, c, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := Sleep(ctx, c, 0); err == nil {
			t.Error("slept under a done context")
		}
	})
}

func TestDriftCoversBothClocksOverTheSpan(t *testing.T) {
	if got := (Drift{}).Over(10 * time.Second); got != 102*time.Millisecond {
		t.Errorf("default over 10s: %v, want 102ms", got)
	}
	// The exact need, with both clocks at their worst, never exceeds what Over
	// gives for their sum of rates.
	for _, node := range []float64{0, 0.0005, 0.005, 0.083} {
		for _, client := range []float64{0, 0.0005, 0.005, 0.083} {
			d := Drift{Rate: node + client, Slack: time.Millisecond}
			if d.Rate == 0 {
				continue
			}
			for _, ttl := range []time.Duration{10 * time.Millisecond, time.Second, time.Minute} {
				need := time.Duration(float64(ttl) * (client + node) / (1 + node))
				if got := d.Over(ttl); got < need {
					t.Errorf("ρn %v, ρc %v over %v: %v, need %v", node, client, ttl, got, need)
				}
			}
		}
	}
	last := time.Duration(0)
	for ttl := time.Millisecond; ttl < time.Hour; ttl *= 2 {
		if got := (Drift{}).Over(ttl); got < last {
			t.Errorf("drift shrinks at %v", ttl)
		} else {
			last = got
		}
	}
}

func TestDriftOutOfRangeIsRefusedByName(t *testing.T) {
	for _, d := range []Drift{{Rate: -1}, {Rate: 1}, {Rate: math.NaN()}, {Rate: math.Inf(1)}, {Slack: -1}} {
		if d.Validate() == nil {
			t.Errorf("%+v was taken", d)
		}
	}
	for _, d := range []Drift{{}, {Rate: 0.17}, {Slack: time.Second}} {
		if err := d.Validate(); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

func BenchmarkSystemNow(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		System{}.Now()
	}
}
