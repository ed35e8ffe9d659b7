package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine is what a run was made on.
type machine struct {
	CPUs       int    `json:"cpus"`
	CPU        string `json:"cpu,omitempty"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel,omitempty"`
	Go         string `json:"go"`
}

func thisMachine() machine {
	return machine{
		CPUs:       runtime.NumCPU(),
		CPU:        cpuModel(readFile("/proc/cpuinfo")),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		Kernel:     strings.TrimSpace(readFile("/proc/sys/kernel/osrelease")),
		Go:         runtime.Version(),
	}
}

// readFile is what a file holds, nothing if there is none: only Linux has the
// files asked for here.
func readFile(name string) string {
	b, _ := os.ReadFile(name)
	return string(b)
}

// cpuModel is the first processor's name in what Linux says about them.
func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// software is what a run was made with.
type software struct {
	Bench   string `json:"redlock_bench"`
	Library string `json:"quorumlock"`
	GoRedis string `json:"go_redis"`
}

func thisSoftware() software {
	s := software{
		Bench:   "unknown",
		Library: dependency("github.com/quorumlock/quorumlock"),
		GoRedis: dependency("github.com/redis/go-redis/v9"),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		s.Bench = info.Main.Version
	}
	return s
}

// dependency is the version of a module this program was built with; (devel)
// is a working copy, as the repository's workspace uses it.
func dependency(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}
