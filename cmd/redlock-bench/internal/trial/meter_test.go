package trial

import (
	"testing"
	"time"
)

func TestProcessorTimeOfAProcessWhateverItsName(t *testing.T) {
	const rest = " S 1 17 17 0 -1 4194560 100 0 0 0 31 11 7 7 20 0 1 0 100 1000 50"
	for _, name := range []string{"(redis-server)", "(a b)", "(x) y)"} {
		if got, err := ticksOf("17 " + name + rest); err != nil || got != 42 {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	for _, text := range []string{"", "17 (x) S 1", "17 x", "17 (x) S 1 1 1 1 1 1 1 1 1 1 a b c"} {
		if got, err := ticksOf(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestIdleAndWaitingProcessorsAreNotBusy(t *testing.T) {
	//                            user nice system idle iowait irq softirq steal guest
	got, err := busyTicks("cpu  100 20 30 10000 5000 4 5 6 50 0\ncpu0 1 2 3\n")
	if err != nil || got != 165 {
		t.Errorf("%d, %v", got, err)
	}
	for _, text := range []string{"", "cpu 1 2", "intr 1 2 3 4 5 6 7 8 9", "cpu a b c d e f g h i"} {
		if got, err := busyTicks(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestNumberFromInfo(t *testing.T) {
	const info = "# Stats\r\ntotal_connections_received:5\r\ntotal_commands_processed:12\r\ntext:x\r\n"
	if n, ok := infoNumber(info, "total_commands_processed"); !ok || n != 12 {
		t.Errorf("%d, %v", n, ok)
	}
	for _, name := range []string{"commands_processed", "text", "none"} {
		if n, ok := infoNumber(info, name); ok {
			t.Errorf("%s: %d", name, n)
		}
	}
}

// What the meter itself asked for is no part of the cost, and neither is what had
// been used before.
func TestCostIsWhatTheCyclesTook(t *testing.T) {
	from := reading{
		own: time.Second, served: time.Second, knowsPids: true, allocs: 1000, bytes: 5000,
		traffic: traffic{commands: 100, bytes: 10_000, known: true}, asked: traffic{commands: 5, bytes: 500},
	}
	to := reading{
		own: time.Second + 30*time.Millisecond, served: time.Second + 50*time.Millisecond, knowsPids: true, allocs: 1200, bytes: 6000,
		traffic: traffic{commands: 205, bytes: 12_500, known: true},
	}
	c := cost(from, to, 10)
	if c.ClientCPU != 3000 || *c.ServerCPU != 5000 || c.Allocs != 20 || c.AllocBytes != 100 || *c.Commands != 10 || *c.WireBytes != 200 {
		t.Errorf("%+v, server CPU %v, commands %v, wire %v", *c, *c.ServerCPU, *c.Commands, *c.WireBytes)
	}
	if cost(from, to, 0) != nil {
		t.Error("a cost of no cycles")
	}
	to.knowsPids, to.traffic.known = false, false
	if c := cost(from, to, 10); c.ServerCPU != nil || c.Commands != nil || c.WireBytes != nil {
		t.Errorf("a cost that nobody knows: %+v", *c)
	}
}

func TestOthersAreNeitherWeNorOurServersNorOurHelper(t *testing.T) {
	now := time.Now()
	from := reading{at: now, knowsAll: true, knowsOwn: true}
	to := reading{
		at: now.Add(2 * time.Second), knowsAll: true, knowsOwn: true,
		all: 3 * time.Second, own: time.Second, served: 500 * time.Millisecond, helped: 500 * time.Millisecond,
	}
	if o := others(from, to); o == nil || o.Cores != 0.5 {
		t.Errorf("%+v", o)
	}
	to.all = time.Second // clocks that do not quite agree
	if o := others(from, to); o.Cores != 0 {
		t.Errorf("%+v", o)
	}
	to.knowsAll = false
	if o := others(from, to); o != nil {
		t.Errorf("%+v", o)
	}
}
