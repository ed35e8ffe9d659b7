package trial

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userHertz is the unit of times in /proc: Linux shows them in hundredths of a
// second whatever its own tick is.
const userHertz = 100

// ticksOf is how much processor time a process has used, in /proc's unit, by the
// text of its stat file. Its name stands in brackets and may hold anything.
func ticksOf(stat string) (int64, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("not a stat file: %q", stat)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return user + system, err
}

// busyTicks is how much all processors together have worked, by the text of
// /proc/stat; what the hypervisor gave to other machines counts as work. Guests'
// time is in user time already.
func busyTicks(stat string) (int64, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("not /proc/stat: %q", line)
	}
	const idle, iowait = 3, 4
	var busy int64
	for i, text := range fields[1:9] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, err
		}
		if i != idle && i != iowait {
			busy += n
		}
	}
	return busy, nil
}

// cpuOf is the processor time of processes together; false if it cannot be had.
func cpuOf(pids []int) (time.Duration, bool) {
	var all int64
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, false
		}
		ticks, err := ticksOf(string(text))
		if err != nil {
			return 0, false
		}
		all += ticks
	}
	return inTicks(all), true
}

// busy is the processor time of everything together; false if it cannot be had.
func busy() (time.Duration, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	ticks, err := busyTicks(string(text))
	return inTicks(ticks), err == nil
}

func inTicks(n int64) time.Duration { return time.Duration(n) * time.Second / userHertz }
