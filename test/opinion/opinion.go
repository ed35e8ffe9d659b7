// Package opinion has a record of a run judged a second time, by porcupine,
// which knows nothing of locks and searches for an order of what was done. It
// reads the events itself, so that a mistake in how internal/history reads or
// judges them shows as a difference. On a fault it draws a picture.
//
// internal/history is exact, fast and says which two leases are at odds, so it
// comes first. The search is for small records: where something is wrong, each
// client that waits for the same key at the same time doubles its time. It has a
// module of its own, so that nobody who imports the lock inherits it.
//
// The two agree but for two kinds of lease that were held for no time:
//
//   - One released in the very nanosecond in which acquire returned. History says
//     that it overlaps another that was got then; here the two may have come one
//     after the other.
//   - One whose validity was over when acquire returned, which excludes nobody.
//     History wants larger fences of those got afterwards; Leases leaves it out,
//     since an order has no place for a lease that is over before it is told.
package opinion

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/history"
)

// ErrIllegal says that no order explains a record.
var ErrIllegal = errors.New("no order explains what was recorded")

// patience is when a search is given up, with an error that is not ErrIllegal.
const patience = time.Minute

// Fences says whether all fences of a key can have been handed out one after the
// other, each larger than the one before and at some moment between the call and
// the return of its acquire. That must be so whatever clocks and pauses do. If it
// is not, the error wraps ErrIllegal, and a picture of the key is in the file that
// it names; see [Leases].
func Fences(events []history.Event, picture string) error {
	return judge("fences", fences, read(events), picture)
}

// Leases says whether each key can have been in one hand at a time: acquired at
// some moment between call and return, given up at some moment after the call of
// Release, the end of validity or the news of the loss; and that with fences
// which rise. That must be so as long as timing holds.
//
// If it is not, the error wraps ErrIllegal. For the first such key a picture is
// written to the named file, a web page in which one sees how far an order
// could be found.
func Leases(events []history.Event, picture string) error {
	return judge("leases", leases, read(events), picture)
}

// step is one operation of a model.
type step struct {
	client, lease int
	over          string      // why the lease is over; "" for an acquire
	fence         fence.Token // of an acquire
}

func (s step) String() string {
	switch {
	case s.over != "":
		return fmt.Sprintf("client %d, lease %d: %s", s.client, s.lease, s.over)
	case s.fence == 0:
		return fmt.Sprintf("client %d, lease %d: acquire", s.client, s.lease)
	}
	return fmt.Sprintf("client %d, lease %d: acquire → %s", s.client, s.lease, s.fence)
}

// model is a sequential one, and what of a key's leases it is asked about.
type model struct {
	porcupine.Model
	operations func([]*lease) []porcupine.Operation
}

// judge asks a model about each key for itself.
func judge(name string, m model, all []*lease, picture string) error {
	slices.SortStableFunc(all, func(a, b *lease) int { return cmp.Compare(a.key, b.key) })
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].key == all[0].key {
			n++
		}
		operations := m.operations(all[:n])
		open := annotations(all[:n])
		seat(operations, open)
		switch porcupine.CheckOperationsTimeout(m.Model, operations, patience) {
		case porcupine.Unknown:
			return fmt.Errorf("%s of %q: not decided after %v", name, all[0].key, patience)
		case porcupine.Illegal:
			_, info := porcupine.CheckOperationsVerbose(m.Model, operations, patience)
			info.AddAnnotations(open)
			err := fmt.Errorf("%s of %q: %w", name, all[0].key, ErrIllegal)
			if drawn := porcupine.VisualizePath(m.Model, info, picture); drawn != nil {
				return errors.Join(err, drawn)
			}
			return fmt.Errorf("%w: see %s", err, picture)
		}
		all = all[n:]
	}
	return nil
}
