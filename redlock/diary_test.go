package redlock

import (
	"fmt"
	"sync"
)

// diary notes what a Trace is told.
type diary struct {
	mu     sync.Mutex // guards what follows
	events []any
	errs   []error
}

// trace is a Trace that tells d everything.
func (d *diary) trace() *Trace {
	return &Trace{
		Acquired: func(e AcquireEvent) { d.note(e, e.Err) },
		Extended: func(e ExtendEvent) { d.note(e, e.Err) },
		Lost:     func(e LostEvent) { d.note(e, e.Err) },
		Released: func(e ReleaseEvent) { d.note(e, e.Err) },
		Node:     func(e NodeEvent) { d.note(e, e.Err) },
	}
}

func (d *diary) note(event any, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, event)
	if err != nil {
		d.errs = append(d.errs, fmt.Errorf("%T: %w", event, err))
	}
}

// read returns how many events there were, and the errors among them.
func (d *diary) read() (events int, errs []error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.events), d.errs
}

// text is everything that was told, in every form it could be printed in.
func (d *diary) text() (all string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		all += fmt.Sprintf("%v\n%+v\n%#v\n", e, e, e)
	}
	for _, err := range d.errs {
		all += printed(err)
	}
	return all
}

// printed is an error in every form it could be printed in, and all it wraps.
func printed(err error) string {
	all := fmt.Sprintf("%v\n%+v\n%#v\n%q\n", err, err, err, err)
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		if cause := err.Unwrap(); cause != nil {
			all += printed(cause)
		}
	case interface{ Unwrap() []error }:
		for _, cause := range err.Unwrap() {
			all += printed(cause)
		}
	}
	return all
}
