package idempotency

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// Config holds a Guard's settings. The zero value is valid; what most want to set
// is Reconciler.
type Config struct {
	// Lease is how long an owner has a record without renewing, by the store's
	// clock, and so how soon another may look into what became of one that died.
	// It is renewed every third of it. It has to be longer than any wait for a
	// connection to the store. 0 means 15 s.
	Lease time.Duration

	// Retention is how long a record is kept after its owner last wrote to it: after
	// SUCCESS, how long retries get the same answer. It covers the client's
	// timeout, retries of gateways and queues, and a user who comes back.
	// Afterwards the same key is a new intent. 0 means 24 h.
	Retention time.Duration

	// ExecTimeout is how long a run may take, asking the Reconciler included. Then
	// its context ends, with [context.DeadlineExceeded] as its cause, and the lease
	// is no longer renewed. 0 means 30 s.
	ExecTimeout time.Duration

	// Reconciler is asked before anything is run again. nil means that nobody can
	// tell: what was interrupted becomes UNKNOWN, and is for people to resolve.
	Reconciler Reconciler

	// UnknownRetry is the pause between two looks into an UNKNOWN record. 0 means
	// 30 s.
	UnknownRetry time.Duration

	// StoreTimeout is how long the store's answer to one step is waited for, with
	// up to three tries. 0 means 2 s, or half the Lease if that is less; the Lease
	// or more is refused, as an answer could come when it is over.
	StoreTimeout time.Duration

	// MaxResponse is the longest response that is stored, in bytes. Of a longer one
	// a tombstone without a response is. 0 means 1 MiB.
	MaxResponse int

	// Holder says for people who this is, in records. "" means the host's name and
	// the process id.
	Holder string

	// Seal encrypts responses. Once it is set, what was stored without it is not
	// replayable. nil means that they are stored as they are.
	Seal *Seal

	// Clock is where the time of this process comes from, for renewals and
	// timeouts; leases go by the store's. nil means clock.System.
	Clock clock.Clock

	// Trace is told what happens. nil means nobody is.
	Trace *Trace
}

func (c Config) withDefaults() Config {
	defaults := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	defaults(&c.Lease, 15*time.Second)
	defaults(&c.Retention, 24*time.Hour)
	defaults(&c.ExecTimeout, 30*time.Second)
	defaults(&c.UnknownRetry, 30*time.Second)
	defaults(&c.StoreTimeout, min(2*time.Second, c.Lease/2))
	if c.MaxResponse == 0 {
		c.MaxResponse = 1 << 20
	}
	if c.Holder == "" {
		host, _ := os.Hostname() // without one the process id has to do
		c.Holder = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	c.Holder = clean(c.Holder)
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Trace == nil {
		c.Trace = &Trace{}
	}
	return c
}

// validate says what is wrong with a Config, defaults filled in.
func (c Config) validate() error {
	var errs []error
	if c.Lease < 10*time.Millisecond {
		errs = append(errs, invalid("Config.Lease is %v: want at least 10ms", c.Lease))
	}
	if c.ExecTimeout < 0 {
		errs = append(errs, invalid("Config.ExecTimeout is %v: want more than 0", c.ExecTimeout))
	}
	if c.Retention < c.Lease || c.Retention-c.Lease < c.ExecTimeout {
		errs = append(errs, invalid("Config.Retention is %v: want at least ExecTimeout, %v, and Lease, %v, together", c.Retention, c.ExecTimeout, c.Lease))
	}
	if c.UnknownRetry < time.Millisecond || c.UnknownRetry >= c.Retention {
		errs = append(errs, invalid("Config.UnknownRetry is %v: want 1ms or more and less than the Retention, %v, after which it would be forgotten", c.UnknownRetry, c.Retention))
	}
	if c.StoreTimeout < time.Millisecond || c.StoreTimeout >= c.Lease {
		errs = append(errs, invalid("Config.StoreTimeout is %v: want 1ms or more and less than the Lease, %v", c.StoreTimeout, c.Lease))
	}
	if c.MaxResponse < 0 {
		errs = append(errs, invalid("Config.MaxResponse is %d: want 0 for the default, or more", c.MaxResponse))
	}
	return errors.Join(errs...)
}
