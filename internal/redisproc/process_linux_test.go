package redisproc

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// state is the letter Linux gives a process: T means stopped.
func state(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// The name before it is in brackets and may hold anything.
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[0]
}

func TestStoppedServerAnswersWhenContinued(t *testing.T) {
	s := start(t, Options{})
	c := dial(t, "tcp", s.Addr())
	for range 100 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if got := state(t, s.PID()); got != "T" {
			t.Fatalf("stopped, its state is %q", got)
		}
		c.send("PING")
		if err := s.Cont(); err != nil {
			t.Fatal(err)
		}
		if got := c.line(); got != "+PONG" {
			t.Fatalf("PING: %q", got)
		}
	}
}

func TestStoppedServerCanBeKilledAndRestarted(t *testing.T) {
	s := start(t, Options{})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err == nil {
		t.Error("a dead server was stopped")
	}
	if err := s.Restart(patience(t), Wipe); err != nil {
		t.Fatal(err)
	}
	if got := dial(t, "tcp", s.Addr()).ask("PING"); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
}

func TestServerIsNotInOurProcessGroup(t *testing.T) {
	s := start(t, Options{})
	group, err := syscall.Getpgid(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	if group == syscall.Getpgrp() {
		t.Error("an interrupt at the terminal would end it")
	}
}

func TestServerOutlivesTheThreadThatAskedForIt(t *testing.T) {
	Require(t)
	started := make(chan *Server)
	go func() {
		// Never unlocked, so the thread ends with this goroutine.
		runtime.LockOSThread()
		s, err := Start(patience(t), Options{})
		if err != nil {
			t.Error(err)
		}
		started <- s
	}()
	s := <-started
	if s == nil {
		return
	}
	t.Cleanup(func() { s.Close() })
	// Other threads come and go as well.
	for range 20 {
		gone := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(gone)
		}()
		<-gone
	}
	if got := dial(t, "tcp", s.Addr()).ask("PING"); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
}

// parentEnv makes this test program a parent that starts a server and waits
// for its own end.
const parentEnv = "REDISPROC_TEST_PARENT_DIR"

func TestServerEndsWithItsParent(t *testing.T) {
	if dir := os.Getenv(parentEnv); dir != "" {
		s, err := Start(context.Background(), Options{Dir: dir})
		if err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Println("addr", s.Addr())
		select {}
	}
	Require(t)
	parent := exec.Command(os.Args[0], "-test.run=^TestServerEndsWithItsParent$")
	parent.Env = append(os.Environ(), parentEnv+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer parent.Wait()
	defer parent.Process.Kill()
	giveUp := time.AfterFunc(hang, func() { parent.Process.Kill() })
	defer giveUp.Stop()

	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "addr ")
	if !ok {
		t.Fatal(line)
	}
	c := dial(t, "tcp", addr)
	if got := c.ask("PING"); got != "+PONG" {
		t.Fatalf("PING: %q", got)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if line, err := c.in.ReadString('\n'); err == nil || os.IsTimeout(err) {
		t.Errorf("the server outlived its parent: %q, %v", line, err)
	}
}
