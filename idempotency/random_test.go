package idempotency_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/memstore"
)

var (
	firstWorld = flag.Uint64("world", 0, "the first random world that is run")
	worlds     = flag.Uint64("worlds", 400, "how many random worlds are run")
)

// Some processes are asked for the same thing again and again, while calls get
// lost in every way, processes die and come back, and their clocks are wrong. The
// place whose word counts refuses nothing: the guards alone see to it that the
// effect happens once.
func TestRandomWorldsHaveOneEffect(t *testing.T) {
	for seed := *firstWorld; seed < *firstWorld+*worlds; seed++ {
		bubble(t, func(t *testing.T) {
			w := &world{T: t, seed: seed, store: memstore.New(clock.NewSkewed(1))}
			w.live()
			if t.Failed() {
				t.Fatalf("again: go test ./idempotency -run TestRandomWorlds -world %d -worlds 1", seed)
			}
		})
	}
}

type world struct {
	*testing.T
	seed  uint64
	store *memstore.Store

	mu      sync.Mutex // guards what follows
	effects int
}

// draw is a source of chance for one question. It does not depend on who asked
// what before, so that a world is the same however its goroutines are scheduled.
func (w *world) draw(question ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, question...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

func (w *world) live() {
	var processes sync.WaitGroup
	for p := range 3 {
		processes.Go(func() { w.process(p) })
	}
	processes.Wait()
	w.settle()
}

// process lives a few lives, each with a store that it reaches by a bad way.
func (w *world) process(p int) {
	for life := range 3 {
		r := w.draw("clock", p, life)
		c := clock.NewSkewed(0.96 + 0.08*r.Float64())
		c.Step(time.Duration(r.IntN(3)-1) * time.Hour)
		cutAt := time.Duration(r.IntN(int(40 * time.Second)))
		heals := cutAt + time.Duration(r.IntN(int(20*time.Second)))
		born := time.Now()
		steps := map[string]int{} // guarded by the world's mutex
		way := &way{Store: w.store,
			takes: func(string) time.Duration {
				w.mu.Lock()
				defer w.mu.Unlock()
				steps["takes"]++
				return time.Duration(w.draw("takes", p, life, steps["takes"]).IntN(int(300 * time.Millisecond)))
			},
			fails: func(_ int, step string) fault {
				w.mu.Lock()
				defer w.mu.Unlock()
				steps[step]++
				if age := time.Since(born); age >= cutAt && age < heals {
					return unsent
				}
				if r := w.draw("fails", p, life, step, steps[step]); r.IntN(100) < 30 {
					return fault(1 + r.IntN(int(late)))
				}
				return fine
			}}
		g := guard(w.T, way, idempotency.Config{Lease: 8 * time.Second, UnknownRetry: 5 * time.Second, Clock: c, Reconciler: w.reconciler(p, life)})
		for request := range 4 {
			r := w.draw("request", p, life, request)
			time.Sleep(time.Duration(r.IntN(int(12 * time.Second))))
			if w.request(g, way, r) {
				break // it has died
			}
		}
		way.under.Wait()
	}
}

var errKilled = errors.New("killed")

// request is one request, and returns whether its process has died.
func (w *world) request(g *idempotency.Guard, way *way, r *rand.Rand) (died bool) {
	defer func() {
		if p := recover(); p == errKilled {
			died = true
		}
	}()
	before, after, end := r.IntN(int(12*time.Second)), r.IntN(int(6*time.Second)), r.IntN(10)
	result, info, err := g.Do(w.Context(), asked, func(ctx context.Context, _ *idempotency.Execution) (idempotency.Result, error) {
		if clock.Sleep(ctx, clock.NewSkewed(1), time.Duration(before)) != nil {
			return idempotency.Result{}, context.Cause(ctx)
		}
		if end == 0 {
			return idempotency.Result{}, idempotency.NoEffect(errors.New("401"))
		}
		if end == 1 {
			way.die()
			panic(errKilled)
		}
		w.mu.Lock()
		w.effects++
		w.mu.Unlock()
		time.Sleep(time.Duration(after)) // whatever its context says
		switch end {
		case 2:
			way.die()
			panic(errKilled)
		case 3:
			panic("500")
		case 4:
			return idempotency.Result{}, errors.New("500")
		}
		return idempotency.Result{Response: []byte("o1001")}, nil
	})
	if err == nil && string(result.Response) != "o1001" {
		w.Errorf("answered %q, %+v", result.Response, info)
	}
	return false
}

// reconciler looks into what has really happened, and sometimes cannot.
func (w *world) reconciler(who ...any) idempotency.Reconciler {
	n := 0
	return func(ctx context.Context, _ idempotency.Record) (idempotency.Verdict, error) {
		w.mu.Lock()
		n++
		r := w.draw("reconciler", who, n)
		w.mu.Unlock()
		if clock.Sleep(ctx, clock.NewSkewed(1), time.Duration(r.IntN(int(2*time.Second)))) != nil {
			return idempotency.Verdict{}, context.Cause(ctx)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case r.IntN(5) == 0:
			return idempotency.CannotTell("it does not answer"), nil
		case w.effects > 0:
			return idempotency.Happened(idempotency.Result{Response: []byte("o1001")}), nil
		}
		return idempotency.DidNotHappen(), nil
	}
}

// settle is a client that comes back until it is answered.
func (w *world) settle() {
	g := guard(w.T, w.store, idempotency.Config{Lease: 8 * time.Second, UnknownRetry: 5 * time.Second, Reconciler: w.reconciler("last")})
	for range 100 {
		result, _, err := g.Do(w.Context(), asked, func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.effects++
			return idempotency.Result{Response: []byte("o1001")}, nil
		})
		if err == nil {
			if string(result.Response) != "o1001" || w.effects != 1 {
				w.Errorf("world %d: at last %q, and %d effects", w.seed, result.Response, w.effects)
			}
			return
		}
		time.Sleep(3 * time.Second)
	}
	w.Errorf("world %d: it never came to an end", w.seed)
}
