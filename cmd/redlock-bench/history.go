package main

import (
	"bufio"
	"errors"
	"os"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
)

// writeHistory writes the events of all leases to a file, if it has a name. An
// acquire that came to nothing is not among them.
func writeHistory(name string, holds []history.Hold) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	for i, h := range holds {
		for _, e := range events(h, i+1) {
			err = errors.Join(err, history.Write(w, e))
		}
	}
	return errors.Join(err, w.Flush(), file.Close())
}

// events are those of one lease.
func events(h history.Hold, number int) []history.Event {
	at := func(at time.Duration, op history.Op) history.Event {
		return history.Event{At: at, Client: h.Holder, Lease: number, Op: op, Key: h.Key}
	}
	got := at(h.Acquired, history.OpAcquire)
	got.Outcome, got.Fence, got.Until = history.OK, h.Fence, h.Until
	all := []history.Event{at(h.Called, history.OpAcquire), got}
	if h.Lost != 0 {
		all = append(all, at(h.Lost, history.OpLost))
	}
	if h.Released != 0 {
		all = append(all, at(h.Released, history.OpRelease))
	}
	return all
}
