package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// Neither a terminal that is closed nor a reader that has seen enough, as in
// "| head", leaves servers or their directories behind.
func TestDrillThatNobodyReadsLeavesNothing(t *testing.T) {
	redisproc.Require(t)
	for name, leave := range map[string]func(*exec.Cmd, io.Closer) error{
		"hang-up":     func(c *exec.Cmd, _ io.Closer) error { return c.Process.Signal(syscall.SIGHUP) },
		"closed pipe": func(_ *exec.Cmd, out io.Closer) error { return out.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), hang)
			defer cancel()
			dir := t.TempDir()
			c := exec.CommandContext(ctx, os.Args[0], "drill", "-nodes", "spawn:3", "-durable", "-d", "1h", "-fault", "stop:n2@0s")
			c.Env = append(os.Environ(), mainEnv+"=1", "TMPDIR="+dir)
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer c.Wait()
			text := bufio.NewReader(out)
			for line := ""; !strings.Contains(line, "PING is not answered"); {
				if line, err = text.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) == 0 {
				t.Fatalf("servers keep nothing in %s: %v", dir, err)
			}
			if err := leave(c, out); err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, text)
			c.Wait()
			if got := c.ProcessState.ExitCode(); got != exitInterrupted {
				t.Errorf("it ended with %v", c.ProcessState)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
