package trial

import (
	"context"
	"runtime"
	"time"
)

// meter reads what this process, the servers and the machine have used.
type meter struct {
	servers servers
	pids    []int // of the servers, where they are ours
	helper  int   // a process of ours that is neither
}

// reading is what had been used at one moment.
type reading struct {
	at                            time.Time
	own, served, helped, all      time.Duration
	knowsOwn, knowsPids, knowsAll bool
	allocs, bytes                 uint64
	traffic, asked                traffic
}

// first reads the servers before the rest and last reads them after it, so that
// between the two is nothing that the meter does.
func (m meter) first(ctx context.Context) reading {
	t, asked := m.servers.traffic(ctx)
	r := m.read()
	r.traffic, r.asked = t, asked
	return r
}

func (m meter) last(ctx context.Context) reading {
	r := m.read()
	r.traffic, _ = m.servers.traffic(ctx)
	return r
}

func (m meter) read() reading {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	r := reading{at: time.Now(), allocs: mem.Mallocs, bytes: mem.TotalAlloc}
	r.own, r.knowsOwn = ownCPU()
	r.served, r.knowsPids = cpuOf(m.pids)
	r.knowsPids = r.knowsPids && len(m.pids) > 0
	if m.helper != 0 {
		r.helped, _ = cpuOf([]int{m.helper})
	}
	r.all, r.knowsAll = busy()
	return r
}

// cost is what each of so many cycles took between two readings.
func cost(from, to reading, cycles int64) *Cost {
	if cycles == 0 {
		return nil
	}
	each := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) / float64(cycles) }
	c := &Cost{
		ClientCPU:  each(to.own - from.own),
		Allocs:     float64(to.allocs-from.allocs) / float64(cycles),
		AllocBytes: float64(to.bytes-from.bytes) / float64(cycles),
	}
	if from.knowsPids && to.knowsPids {
		served := each(to.served - from.served)
		c.ServerCPU = &served
	}
	if from.traffic.known && to.traffic.known {
		commands := float64(to.traffic.commands-from.traffic.commands-from.asked.commands) / float64(cycles)
		bytes := float64(to.traffic.bytes-from.traffic.bytes-from.asked.bytes) / float64(cycles)
		c.Commands, c.WireBytes = &commands, &bytes
	}
	return c
}

// others is who else was busy between two readings. Where the servers are not
// ours they may be among them.
func others(from, to reading) *Others {
	if !from.knowsAll || !to.knowsAll || !from.knowsOwn || !to.at.After(from.at) {
		return nil
	}
	ours := to.own - from.own + to.served - from.served + to.helped - from.helped
	foreign := max(0, to.all-from.all-ours)
	return &Others{Cores: foreign.Seconds() / to.at.Sub(from.at).Seconds()}
}
