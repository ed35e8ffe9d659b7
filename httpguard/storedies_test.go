package httpguard

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

// The store dies at each of its calls, in each way, and comes back after the
// answer. Nothing that may have had an effect runs again, as there is nobody to ask.
func TestStoreThatDiesAtAnyCallRunsNothingTwice(t *testing.T) {
	slowly := func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Second) // longer than the lease
		created(w, r)
	}
	for _, c := range []struct {
		call    string
		handler http.HandlerFunc
		faults  []fault
		first   string // the answer, as in the table of situations
		retry   string // the answer at once, with the store as well as ever
		later   string // the answer once the lease has ended
		runs    int64
	}{
		{"claim", created, []fault{dead, lost, silent}, "503 store-unavailable", order201, replay201, 1},
		{"renew", slowly, []fault{dead, lost, silent}, order201, replay201, replay201, 1},
		{"complete", created, []fault{dead}, order201, "409 in-progress", "409 outcome-unknown", 1},
		{"complete", created, []fault{lost, silent}, order201, replay201, replay201, 1},
		{"unknown", answers(500), []fault{dead}, "500", "409 in-progress", "409 outcome-unknown", 1},
		{"unknown", answers(500), []fault{lost, silent}, "500", "409 outcome-unknown", "409 outcome-unknown", 1},
		{"abandon", answers(429), []fault{dead}, "429", "409 in-progress", "409 outcome-unknown", 1},
		{"abandon", answers(429), []fault{lost, silent}, "429", "429", "429", 3}, // the key is free each time
	} {
		for _, f := range c.faults {
			t.Run(fmt.Sprint(c.call, f), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newService(t, IdempotentConfig{}, idempotency.Config{})
					s.create = c.handler
					s.store.set(f, c.call)
					check := func(when, want string) {
						t.Helper()
						a := s.post()
						checkAnswer(t, a, want)
						if t.Failed() {
							t.Fatalf("%s: %s", when, problemName(a))
						}
					}
					check("first", c.first)
					if s.store.called(c.call) == 0 {
						t.Fatal("the call was not made")
					}
					s.store.set(well, c.call)
					check("retry", c.retry)
					time.Sleep(16 * time.Second)
					check("later", c.later)
					time.Sleep(time.Hour)
					if runs := s.runs.Load(); runs != c.runs {
						t.Errorf("%d runs, want %d", runs, c.runs)
					}
				})
			})
		}
	}
}
