package clock

import (
	"fmt"
	"time"
)

// Drift bounds how far apart two clocks may count one span: the node's, which
// expires the key, and the client's, which believes in the lease.
//
// A node may run fast by ρn and a client slow by ρc, so after a TTL the client
// may be late by TTL·(ρc+ρn)/(1+ρn) plus the granularity of both timers. Rate
// is for ρc+ρn, Slack for the granularity.
//
// The default rate of 1 % covers ρc+ρn up to 10 000 parts per million: crystals
// (about ±100 ppm) and clocks that ntpd slews (500 ppm) with a wide margin. It
// does not cover chronyd with its default maxslewrate of 83 333 ppm, 8.3 %, on a
// node that is far off and catching up: Redis expires keys by the wall clock,
// which is what chronyd slews. Set maxslewrate 500 on lock nodes and let chronyd
// step only at boot, or use a rate of at least 0.17 (both ends slewing apart).
// Steps of a node's wall clock are not covered by any rate: one forward step of
// a second ends every lease on that node a second early.
type Drift struct {
	Rate  float64       // share of a span by which clocks may differ; 0 means 0.01
	Slack time.Duration // added to every span; 0 means 2 ms
}

// Over is the largest difference that may build up over span. It never
// decreases as span grows.
func (d Drift) Over(span time.Duration) time.Duration {
	d = d.withDefaults()
	return time.Duration(float64(span)*d.Rate) + d.Slack
}

// Validate returns an error that names the field and what would be right, if
// a field is out of range.
func (d Drift) Validate() error {
	d = d.withDefaults()
	if !(d.Rate > 0 && d.Rate < 1) {
		return fmt.Errorf("Drift.Rate is %v: want a share of the span above 0 and below 1, such as 0.01", d.Rate)
	}
	if d.Slack < 0 {
		return fmt.Errorf("Drift.Slack is %v: want a duration above 0, such as 2ms", d.Slack)
	}
	return nil
}

func (d Drift) withDefaults() Drift {
	if d.Rate == 0 {
		d.Rate = 0.01
	}
	if d.Slack == 0 {
		d.Slack = 2 * time.Millisecond
	}
	return d
}
