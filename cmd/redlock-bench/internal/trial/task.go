// Package trial takes one measurement in a process that does nothing else:
// what a child of "redlock-bench compare" is told, what it does, and what it
// answers.
package trial

import "time"

// Modes are what can be measured.
const (
	Limit       = "limit"       // what the machine can do, by the pump
	Uncontended = "uncontended" // each worker on keys of its own
	RTT         = "rtt"         // the same over a network, which the nodes' URLs lead through
	Contended   = "contended"   // all workers on one key
	Fault       = "fault"       // as uncontended, while something happens to nodes
	Alive       = "alive"       // many leases that one locker keeps
)

// A Task is one measurement.
type Task struct {
	Mode  string `json:"mode"`
	Rival string `json:"rival,omitempty"` // by rival.Named; none for the limit

	URLs   []string `json:"urls"` // of the nodes, with their passwords
	PIDs   []int    `json:"pids"` // of the servers, where they are ours
	Helper int      `json:"helper,omitempty"`
	Prefix string   `json:"prefix"`
	Fresh  bool     `json:"fresh"` // see rival.Site
	LeadMS float64  `json:"lead_ms,omitempty"`

	Workers int           `json:"workers,omitempty"`
	Lockers int           `json:"lockers,omitempty"` // that they share; 0 is 1
	Hold    time.Duration `json:"hold,omitempty"`
	WarmUp  time.Duration `json:"warm_up"`
	Length  time.Duration `json:"length"` // of what is measured

	Act    string        `json:"act,omitempty"`    // what happens to nodes, once the load has run for Length
	Nodes  []int         `json:"nodes,omitempty"`  // to which
	Faulty time.Duration `json:"faulty,omitempty"` // how long it lasts
	After  time.Duration `json:"after,omitempty"`  // how long the load goes on afterwards

	Leases int           `json:"leases,omitempty"`
	TTL    time.Duration `json:"ttl,omitempty"` // 0: the implementation's own

	Scheme string `json:"scheme,omitempty"` // of the pump, by pump.Named
	Flight int    `json:"flight,omitempty"` // its keys per flight
}

// Figures are what was measured. What does not belong to the mode, or could not
// be had, is missing. Fields may be added; every number is in the unit its name
// ends with.
type Figures struct {
	Seconds    float64 `json:"seconds"`
	Cycles     int64   `json:"cycles"`
	Rate       float64 `json:"cycles_per_s"`
	Failed     int64   `json:"failed"` // calls that ended with an error
	FirstError string  `json:"first_error,omitempty"`
	Cut        int     `json:"cut"`               // calls that had not ended when there was no more waiting for them
	Closing    string  `json:"closing,omitempty"` // what closing complained of
	Overlaps   int64   `json:"overlaps"`          // two holders at once
	Left       *int    `json:"left"`              // keys on the nodes after all releases had returned; null if nobody could look

	Acquire *Latency `json:"acquire,omitempty"`
	Release *Latency `json:"release,omitempty"`
	Cycle   *Latency `json:"cycle,omitempty"`

	Cost   *Cost   `json:"cost_per_cycle,omitempty"`
	Others *Others `json:"others,omitempty"`

	Contended *Fairness `json:"contended,omitempty"`
	Fault     *Course   `json:"fault,omitempty"`
	Alive     *Keeping  `json:"alive,omitempty"`
}

// Latency is how long something took.
type Latency struct {
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p99_9_us"`
	Max  float64 `json:"max_us"`
}

// Cost is what a cycle took of the machine.
type Cost struct {
	ClientCPU  float64  `json:"client_cpu_us"`
	ServerCPU  *float64 `json:"server_cpu_us"` // null where the servers are not ours
	Allocs     float64  `json:"allocations"`
	AllocBytes float64  `json:"allocated_bytes"`
	Commands   *float64 `json:"server_commands"` // those inside scripts included
	WireBytes  *float64 `json:"wire_bytes"`      // both ways, as the servers count them
}

// Others are who else used the processors meanwhile.
type Others struct {
	Cores float64 `json:"cores"` // busy with neither this program nor its servers
}

// Fairness is how workers shared one key.
type Fairness struct {
	Handovers         int64    `json:"handovers"` // to another worker; back to the same does not count
	PerSecond         float64  `json:"handovers_per_s"`
	Jain              float64  `json:"jain"` // over all workers, of the handovers each was given
	WaitP50           float64  `json:"wait_p50_us"`
	WaitP99           float64  `json:"wait_p99_us"`
	LongestWait       float64  `json:"longest_wait_us"` // also one that had not ended
	LongestOverMedian float64  `json:"longest_over_median_wait"`
	Commands          *float64 `json:"commands_per_handover"`
	Shares            []int64  `json:"shares"` // handovers of each worker, most first
}

// Course is how a load fared through a fault.
type Course struct {
	BeganS  float64 `json:"fault_began_s"` // it was there, since the load began to count
	EndedS  float64 `json:"fault_ended_s"` // its end began, or the load's
	Healthy Spell   `json:"healthy"`
	Faulty  Spell   `json:"faulty"`
	After   *Spell  `json:"after,omitempty"` // where the fault can end

	LongestAcquire float64 `json:"longest_acquire_ms"` // that began in the fault, also one that had not ended by its end
	LongestRelease float64 `json:"longest_release_ms"`
	Unfinished     int     `json:"unfinished"` // calls under way when the fault ended that had begun a second before or earlier

	GoroutinesBefore int     `json:"goroutines_before"`
	GoroutinesEnd    int     `json:"goroutines_at_end_of_fault"`
	HeapBefore       float64 `json:"heap_before_mb"`
	HeapEnd          float64 `json:"heap_at_end_of_fault_mb"`

	Timeline []Moment `json:"timeline"`
}

// Spell is a part of the course.
type Spell struct {
	Seconds float64  `json:"seconds"`
	Cycles  int64    `json:"cycles"` // that ended in it
	Rate    float64  `json:"cycles_per_s"`
	Failed  int64    `json:"failed"`
	Acquire *Latency `json:"acquire,omitempty"` // that began in it; one that hangs at its end is as old as it is
}

// Moment is a tenth of a second of the course.
type Moment struct {
	AtS    float64 `json:"at_s"` // where it begins
	Rate   float64 `json:"cycles_per_s"`
	P99    float64 `json:"acquire_p99_us,omitempty"` // of those that ended in it
	Failed int64   `json:"failed,omitempty"`
}

// Keeping is what it took to keep many leases alive.
type Keeping struct {
	Leases   int     `json:"leases"`
	TTLS     float64 `json:"ttl_s"`
	AcquireS float64 `json:"acquire_s"` // to get them all
	WatchedS float64 `json:"watched_s"`
	Renewals int64   `json:"renewals"`
	Failed   int64   `json:"failed_renewals"`
	Lost     int64   `json:"lost"`

	PlannedS   float64 `json:"planned_interval_s"` // between two renewals of a lease
	P50S       float64 `json:"interval_p50_s"`
	P99S       float64 `json:"interval_p99_s"`
	LongestS   float64 `json:"interval_longest_s"`
	LeastLeftS float64 `json:"least_left_s"` // of any validity, when its renewal came

	ClientCores float64  `json:"client_cores"`
	ServerCores *float64 `json:"server_cores"`
	HeapMB      float64  `json:"heap_mb"` // that the leases took
	HeapEach    float64  `json:"heap_bytes_per_lease"`
	CPUEach     float64  `json:"client_cpu_us_per_renewal"`
}

// Span is how long the load of a task runs.
func (t Task) Span() time.Duration { return t.WarmUp + t.Length + t.Faulty + t.After }
