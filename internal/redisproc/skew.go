package redisproc

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// StepClock sets the server's wall clock by this much, forward or, below zero,
// back. It needs [Options.SkewedClock]. The server's monotonic clock is left alone, as
// when a machine's time is set: keys end by the wall clock, and uptime is
// counted by it, while the server's own timers go by the other.
//
// The clock is the machine's, not the process's: it stays as it is through
// restarts, and may be set while no process runs.
func (s *Server) StepClock(by time.Duration) error {
	return s.setClock(func(now *setting) { now.shown += int64(by) })
}

// SetClockRate makes the server's wall clock run at this rate from now on: 1 is
// right, 2 is twice as fast. Otherwise it is as [Server.StepClock].
func (s *Server) SetClockRate(rate float64) error {
	return s.setClock(func(now *setting) { now.rate = rate })
}

func (s *Server) setClock(change func(now *setting)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.clock == nil:
		return errors.New("the server was started without a clock of its own")
	}
	return s.clock.set(change)
}

// RequireClock ends a test that needs [Options.SkewedClock] where that cannot be
// had, with the reason: it is skipped, and where CI is "true" it fails.
func RequireClock(tb TB) {
	tb.Helper()
	_, err := shim()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		tb.Fatalf("a clock of its own is required here: %v", err)
	default:
		tb.Skipf("no clock of its own: %v", err)
	}
}

//go:embed clockshim.c
var shimSource []byte

// shim is the library built from clockshim.c, by CC or the system's compiler.
var shim = sync.OnceValues(func() ([]byte, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("%w: it takes Linux", errors.ErrUnsupported)
	}
	dir, err := os.MkdirTemp("", "redisproc-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source, library := filepath.Join(dir, "clockshim.c"), filepath.Join(dir, "clockshim.so")
	if err := os.WriteFile(source, shimSource, 0o600); err != nil {
		return nil, err
	}
	cc := compiler()
	said, err := exec.Command(cc[0], append(cc[1:], "-Wall", "-Wextra", "-O2", "-shared", "-fPIC", "-o", library, source)...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", cc, err, said)
	}
	return os.ReadFile(library)
})

// compiler is the command that CC names, else the system's C compiler.
func compiler() []string {
	if named := strings.Fields(os.Getenv("CC")); len(named) > 0 {
		return named
	}
	if _, err := exec.LookPath("cc"); err != nil {
		return []string{"gcc"}
	}
	return []string{"cc"}
}

// wallClock is a clock that a server shows in the stead of the machine's. Its
// directory is not the server's, which may lose all it has.
type wallClock struct {
	dir  string
	page *os.File // as clockshim.c has it
	slot byte     // of the current setting there
	now  setting
}

// setting says what a clock shows, in nanoseconds since 1970: shown when the real
// one shows real, and from there on it runs at rate.
type setting struct {
	real, shown int64
	rate        float64
}

// newWallClock is a clock that is right so far.
func newWallClock(dir string) (*wallClock, error) {
	library, err := shim()
	if err != nil {
		return nil, err
	}
	if dir, err = os.MkdirTemp(dir, "redisproc-clock-"); err != nil {
		return nil, err
	}
	page, err := os.Create(filepath.Join(dir, "page"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	real := time.Now().UnixNano()
	c := &wallClock{dir: dir, page: page, now: setting{real, real, 1}}
	err = errors.Join(
		os.WriteFile(c.library(), library, 0o700),
		page.Truncate(settingsAt+settings*settingSize),
		c.set(func(*setting) {}))
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// Where clockshim.c finds the settings, and how large one is.
const settingsAt, settings, settingSize = 64, 128, 24

// set changes what the clock shows from now on.
func (c *wallClock) set(change func(now *setting)) error {
	real := time.Now().UnixNano()
	next := setting{real, c.now.shown + int64(float64(real-c.now.real)*c.now.rate), c.now.rate}
	change(&next)
	slot := (c.slot + 1) % settings
	var b []byte
	b = binary.NativeEndian.AppendUint64(b, uint64(next.real))
	b = binary.NativeEndian.AppendUint64(b, uint64(next.shown))
	b = binary.NativeEndian.AppendUint64(b, math.Float64bits(next.rate))
	if _, err := c.page.WriteAt(b, settingsAt+int64(slot)*settingSize); err != nil {
		return err
	}
	if _, err := c.page.WriteAt([]byte{slot}, 0); err != nil {
		return err
	}
	c.slot, c.now = slot, next
	return nil
}

// environment is what a process needs to go by this clock.
func (c *wallClock) environment() []string {
	return []string{"LD_PRELOAD=" + c.library(), "QUORUMLOCK_CLOCK=" + filepath.Join(c.dir, "page")}
}

func (c *wallClock) library() string { return filepath.Join(c.dir, "clockshim.so") }

func (c *wallClock) close() error { return errors.Join(c.page.Close(), os.RemoveAll(c.dir)) }
