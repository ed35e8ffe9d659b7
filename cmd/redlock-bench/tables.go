package main

import (
	"fmt"
	"strings"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
)

// chapter is what a report says of a mode.
type chapter struct {
	mode, title string
	tables      func([]scored) []table
	plots       func(comparison, []scored) ([]plot, error) // nil: none
}

var chapters = []chapter{
	{trial.Uncontended, "Uncontended", uncontendedTables, comparison.speedPlots},
	{trial.RTT, "Over a network", distantTables, comparison.distantPlots},
	{trial.Contended, "Contended", contendedTables, comparison.contendedPlots},
	{trial.Fault, "Through a fault", faultTables, comparison.faultPlots},
	{trial.Alive, "Kept alive", aliveTables, comparison.alivePlots},
	{trial.Limit, "The limit", limitTables, nil},
}

// of are the chapter's tables, with what went wrong under the last.
func (ch chapter) of(scenes []scored) []table {
	tables := ch.tables(scenes)
	last := &tables[len(tables)-1]
	last.Notes = append(last.Notes, wentWrong(scenes)...)
	return tables
}

// tables are what a comparison says in figures.
func (c comparison) tables() (all []table) {
	for _, ch := range chapters {
		if scenes := c.of(ch.mode); len(scenes) > 0 {
			all = append(all, ch.of(scenes)...)
		}
	}
	return all
}

// of are the scenes of a mode.
func (c comparison) of(mode string) (scenes []scored) {
	for _, sc := range c.Scenes {
		if sc.Mode == mode {
			scenes = append(scenes, sc)
		}
	}
	return scenes
}

// column is one of a table's.
type column struct {
	head string
	cell func(scored, row) string
}

// tableOf has a row for everybody in every scene.
func tableOf(title string, scenes []scored, words int, columns []column, notes ...string) table {
	t := table{Title: title, Words: words, Notes: notes}
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	for _, sc := range scenes {
		for _, r := range sc.Rows {
			var cells []string
			for _, c := range columns {
				cells = append(cells, c.cell(sc, r))
			}
			t.Rows = append(t.Rows, cells)
		}
	}
	return t
}

// wentWrong says what did, and what it means that calls were cut.
func wentWrong(scenes []scored) (notes []string) {
	cut := 0
	for _, sc := range scenes {
		for _, r := range sc.Rows {
			cut += r.Cut
			if len(r.Errors) > 0 {
				notes = append(notes, fmt.Sprintf("First error of %s, %s: %s", sc.Title, r.Title, shortened(r.Errors[0])))
			}
		}
	}
	if cut > 0 {
		notes = append(notes, "Cut are calls, of all repetitions together, that had not ended 3 s after the end and were given up. Who hung before that is missing from the load.")
	}
	return notes
}

// shortened is an error in one line that is not too long; JSON has all of it.
func shortened(e string) string {
	const most = 160
	runes := []rune(strings.ReplaceAll(e, "\n", "; "))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}

// figureColumn is one with a metric's median.
func figureColumn(head, metric string, as func(float64) string) column {
	return column{head, func(_ scored, r row) string { return r.show(metric, as) }}
}

var (
	whoColumn     = column{"", func(_ scored, r row) string { return r.Title }}
	workersColumn = column{"c", func(sc scored, _ row) string { return fmt.Sprint(sc.Workers) }}
	sceneColumn   = column{"", func(sc scored, _ row) string { return sc.Title }}
	leftColumn    = column{"keys left", func(_ scored, r row) string { return r.left() }}
	failedColumn  = column{"failed", func(_ scored, r row) string { return r.failures() }}
	cutColumn     = column{"cut", func(_ scored, r row) string { return r.cut() }}
	foreignColumn = column{"others' cores", func(_ scored, r row) string { return r.foreign() }}
	rateColumn    = figureColumn("cycles/s", "cycles_per_s", grouped)
	rangeColumn   = column{"min–max", func(_ scored, r row) string { return r.fromTo("cycles_per_s") }}
	timesColumn   = column{"× redsync", func(_ scored, r row) string { return r.times("cycles_per_s") }}
	shareColumn   = column{"of the limit", func(_ scored, r row) string {
		if r.OfLimit == nil {
			return absent
		}
		return percent(*r.OfLimit)
	}}
)

var latencyColumns = []column{
	figureColumn("acquire p50", "acquire_p50_us", us), figureColumn("p99", "acquire_p99_us", us), figureColumn("p99.9", "acquire_p99_9_us", us),
}

func uncontendedTables(scenes []scored) []table {
	speed := []column{workersColumn, whoColumn, rateColumn, rangeColumn, timesColumn, shareColumn}
	return []table{
		tableOf("Uncontended: speed", scenes, 2, append(speed, latencyColumns...)),
		costTable("Uncontended: cost of a cycle", scenes),
	}
}

func distantTables(scenes []scored) []table {
	speed := []column{workersColumn, whoColumn, rateColumn, rangeColumn, timesColumn}
	speed = append(append(speed, latencyColumns...), leftColumn, failedColumn, cutColumn, foreignColumn)
	return []table{tableOf(fmt.Sprintf("%v added to each round trip", relayed), scenes, 2, speed,
		"The relays run on the same processors, and take some of them.")}
}

func costTable(title string, scenes []scored) table {
	return tableOf(title, scenes, 2, []column{
		workersColumn, whoColumn,
		figureColumn("client CPU", "client_cpu_us", us), figureColumn("server CPU", "server_cpu_us", us),
		figureColumn("allocations", "allocations", digits), figureColumn("allocated", "allocated_bytes", octets),
		figureColumn("commands", "server_commands", digits), figureColumn("on the wire", "wire_bytes", octets),
		leftColumn, failedColumn, cutColumn, foreignColumn,
	}, "Commands are those that the servers ran, those inside scripts included. The client's CPU includes the load generator, which is the same for all.")
}

func contendedTables(scenes []scored) []table {
	return []table{tableOf(fmt.Sprintf("Contended: %d workers, one key, held for 1 ms", crowd), scenes, 2, []column{
		{"", func(sc scored, _ row) string { return plural(sc.Lockers, "locker") }}, whoColumn,
		figureColumn("handovers/s", "handovers_per_s", digits),
		{"min–max", func(_ scored, r row) string { return r.fromTo("handovers_per_s") }},
		{"× redsync", func(_ scored, r row) string { return r.times("handovers_per_s") }},
		figureColumn("Jain", "jain", cores),
		figureColumn("wait p50", "wait_p50_us", us), figureColumn("p99", "wait_p99_us", us), figureColumn("longest", "longest_wait_us", us),
		figureColumn("longest/p50", "longest_over_median_wait", digits),
		figureColumn("commands", "commands_per_handover", digits),
		{"overlaps", func(_ scored, r row) string { return fmt.Sprint(r.Overlaps) }},
		leftColumn, failedColumn, cutColumn, foreignColumn,
	}, "A handover goes to another worker; who takes the key again that it has just released is not counted. Jain's index is 1 if all workers are "+
		"given it as often, and 1/64 if one of them gets it all. Waits that had not ended count with their age. All lockers are in one process.")}
}

func faultTables(scenes []scored) []table {
	return []table{tableOf("Through a fault", scenes, 2, []column{
		sceneColumn, whoColumn,
		figureColumn("cycles/s before", "cycles_per_s", grouped), figureColumn("in the fault", "faulty_cycles_per_s", grouped),
		figureColumn("of its own", "faulty_over_healthy_rate", percent),
		figureColumn("acquire p50", "faulty_acquire_p50_us", us), figureColumn("p99", "faulty_acquire_p99_us", us),
		figureColumn("longest acquire", "longest_acquire_ms", millisecs), figureColumn("release", "longest_release_ms", millisecs),
		figureColumn("hanging", "unfinished_calls", digits), figureColumn("goroutines more", "goroutines_more", digits),
		leftColumn, failedColumn, cutColumn, foreignColumn,
	}, "Latencies are of acquires that began in the fault; calls that had not ended when it ended count with their age. Hanging are calls that were older than a second then. "+
		"Who uses one node has no answer to its loss, and is not here.")}
}

func aliveTables(scenes []scored) []table {
	return []table{tableOf("Leases kept alive by one locker", scenes, 2, []column{
		{"leases", func(sc scored, _ row) string { return grouped(float64(sc.Leases)) }}, whoColumn,
		figureColumn("acquired in", "acquire_all_s", inSeconds), figureColumn("renewals/s", "cycles_per_s", grouped),
		figureColumn("due every", "planned_interval_s", inSeconds), figureColumn("interval p50", "renewal_interval_p50_s", inSeconds), figureColumn("longest", "renewal_interval_longest_s", inSeconds),
		figureColumn("failed", "failed_renewals", digits), figureColumn("lost", "lost_leases", digits),
		figureColumn("client cores", "client_cores", cores), figureColumn("server cores", "server_cores", cores),
		figureColumn("client CPU per renewal", "client_cpu_us_per_renewal", us),
		figureColumn("heap per lease", "heap_bytes_per_lease", octets), figureColumn("heap", "heap_mb", func(n float64) string { return digits(n) + " MB" }),
		leftColumn, foreignColumn,
	}, "Measured once. They are acquired evenly over a third of the TTL. Renewals are due every third of the TTL; the interval is between two of one lease.")}
}

func limitTables(scenes []scored) []table {
	return []table{tableOf("What the machine can do", scenes, 2, []column{
		sceneColumn, whoColumn, rateColumn, rangeColumn,
		figureColumn("client CPU", "client_cpu_us", us), figureColumn("server CPU", "server_cpu_us", us), foreignColumn,
	}, "A pump with blocking sockets, prepared bytes and no parsing, that sends what a lock must. The limit that others are a share of is the one for plain commands: 1 × 1 for c = 1, else 4 × 64.")}
}
