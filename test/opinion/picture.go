package opinion

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/quorumlock/quorumlock/internal/history"
)

// annotations are what is drawn and not searched: acquires of unknown outcome.
// Each stays open to the end and so may come last of all, where it stands in
// nobody's way. To search for a place all the same would make the search longer,
// twice for each.
func annotations(all []*lease) (open []porcupine.Annotation) {
	for _, l := range all {
		if l.outcome == history.Unknown {
			open = append(open, porcupine.Annotation{
				ClientId: l.client, Start: int64(l.called), End: int64(l.end),
				Description: fmt.Sprintf("client %d, lease %d: acquire, unknown", l.client, l.number),
			})
		}
	}
	return open
}

// seat gives rows of the picture. A client has as many as it does things at the
// same time, or nothing would be seen of what is drawn first.
func seat(operations []porcupine.Operation, open []porcupine.Annotation) {
	type bar struct {
		client   int
		row      *int
		from, to int64
	}
	var bars []bar
	for i := range operations {
		o := &operations[i]
		bars = append(bars, bar{o.ClientId, &o.ClientId, o.Call, o.Return})
	}
	for i := range open {
		a := &open[i]
		bars = append(bars, bar{a.ClientId, &a.ClientId, a.Start, a.End})
	}
	slices.SortStableFunc(bars, func(a, b bar) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.from, b.from))
	})
	first := 0       // the client's first row
	var busy []int64 // until when each row of the client is
	for i, b := range bars {
		if i > 0 && b.client != bars[i-1].client {
			first += len(busy)
			busy = nil
		}
		n := slices.IndexFunc(busy, func(until int64) bool { return until < b.from })
		if n < 0 {
			n = len(busy)
			busy = append(busy, 0)
		}
		busy[n] = b.to
		*b.row = first + n
	}
}
