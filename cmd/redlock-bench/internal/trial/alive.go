package trial

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/rival"
)

// gatherers is how many acquire and release the leases that are kept.
const gatherers = 64

// register is when each lease was renewed last.
type register struct {
	epoch  time.Time
	last   []atomic.Int64 // nanoseconds since the epoch; 0 before the first renewal that counts
	failed atomic.Int64
	lost   atomic.Int64

	mu        sync.Mutex // guards what follows
	counting  bool
	intervals []time.Duration
	renewals  int64
}

// keep acquires many leases and watches one locker renew them.
func (s *site) keep(ctx context.Context, lock rival.Lock) (f Figures, err error) {
	r := &register{epoch: time.Now(), last: make([]atomic.Int64, s.Leases)}
	l, err := lock.Open(rival.Site{
		URLs: s.URLs, Prefix: s.Prefix, Fresh: s.Fresh, TTL: s.TTL, Lead: s.lead(),
		Trace: rival.Trace{Renewed: r.renewed, Lost: func() { r.lost.Add(1) }},
	})
	if err != nil {
		return f, err
	}
	s.lockers = append(s.lockers, l)
	if err := s.one(ctx, l); err != nil {
		return f, err
	}

	bare := heap()
	leases := make([]rival.Kept, s.Leases)
	began := time.Now()
	err = s.each(func(i int) error {
		// Evenly over the time between two renewals: those who are acquired in a
		// burst are renewed in one for ever after.
		if wait(ctx, time.Until(began.Add(time.Duration(i)*s.TTL/3/time.Duration(s.Leases)))); ctx.Err() != nil {
			return ctx.Err()
		}
		lease, err := l.Acquire(ctx, "kept:"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		kept, can := lease.(rival.Kept)
		if !can {
			return fmt.Errorf("%s renews nothing", s.Rival)
		}
		leases[i] = kept
		kept.KeepAlive()
		return nil
	})
	gathered := time.Since(began)
	if err == nil {
		k := &Keeping{Leases: s.Leases, TTLS: s.TTL.Seconds(), AcquireS: gathered.Seconds(), PlannedS: s.TTL.Seconds() / 3}
		f = s.watch(ctx, r, k)
		k.HeapMB = float64(heap()-bare) / (1 << 20)
		k.HeapEach = float64(heap()-bare) / float64(s.Leases)
		runtime.KeepAlive(leases)
	}
	after := context.WithoutCancel(ctx)
	released := s.each(func(i int) error {
		if leases[i] == nil {
			return nil
		}
		return leases[i].Release(after)
	})
	if released != nil {
		f.Failed++
		f.FirstError = released.Error()
	}
	return f, errors.Join(err, ctx.Err())
}

// watch lets the locker renew for the task's length, after every lease has been
// renewed once.
func (s *site) watch(ctx context.Context, r *register, k *Keeping) Figures {
	wait(ctx, s.WarmUp)
	r.count(true)
	from := s.meter.first(ctx)
	wait(ctx, s.Length)
	to := s.meter.last(ctx)
	r.count(false)
	took := to.at.Sub(from.at)

	k.WatchedS, k.Renewals, k.Failed, k.Lost = took.Seconds(), r.renewals, r.failed.Load(), r.lost.Load()
	slices.Sort(r.intervals)
	k.P50S, k.P99S = percentile(r.intervals, 50).Seconds(), percentile(r.intervals, 99).Seconds()
	if n := len(r.intervals); n > 0 {
		k.LongestS = r.intervals[n-1].Seconds()
		k.LeastLeftS = k.TTLS - k.LongestS
	}
	k.ClientCores = (to.own - from.own).Seconds() / took.Seconds()
	if from.knowsPids && to.knowsPids {
		served := (to.served - from.served).Seconds() / took.Seconds()
		k.ServerCores = &served
	}
	f := Figures{
		Seconds: took.Seconds(), Cycles: k.Renewals, Rate: float64(k.Renewals) / took.Seconds(), Failed: k.Failed,
		Cost: cost(from, to, k.Renewals), Others: others(from, to), Alive: k,
	}
	if f.Cost != nil {
		k.CPUEach = f.Cost.ClientCPU
	}
	return f
}

// renewed takes note of a renewal.
func (r *register) renewed(key string, err error) {
	if err != nil {
		r.failed.Add(1)
		return
	}
	i, err := strconv.Atoi(key[len("kept:"):])
	if err != nil {
		return
	}
	now := time.Since(r.epoch)
	before := time.Duration(r.last[i].Swap(int64(now)))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counting {
		r.renewals++
		if before > 0 {
			r.intervals = append(r.intervals, now-before)
		}
	}
}

func (r *register) count(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counting = yes
	if yes {
		// Room for what is to come, so that it is not taken for the leases'.
		r.intervals = make([]time.Duration, 0, 8*len(r.last))
	}
}

// one does a cycle, so that the connections are there.
func (s *site) one(ctx context.Context, l rival.Locker) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	lease, err := l.Acquire(ctx, "first")
	if err != nil {
		return err
	}
	return lease.Release(ctx)
}

// each does something for every lease, some at a time, and gives the first error.
func (s *site) each(do func(i int) error) error {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, gatherers)
	for g := range errs {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= s.Leases {
					return
				}
				if err := do(i); err != nil {
					errs[g] = err
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// heap is how much is in use, garbage left aside.
func heap() uint64 {
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return mem.HeapAlloc + mem.StackInuse
}

// wait lets a time pass, or ends with ctx.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
