package main

import (
	"bufio"
	"errors"
	"os"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
)

// createHistory makes the file for writeHistory; without a name there is none.
func createHistory(name string) (*os.File, error) {
	if name == "" {
		return nil, nil
	}
	return create("history", name)
}

// writeHistory writes the events of all leases to a file, if there is one, and
// closes it. An acquire that came to nothing is not among them.
func writeHistory(file *os.File, holds []history.Hold) (err error) {
	if file == nil {
		return nil
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
