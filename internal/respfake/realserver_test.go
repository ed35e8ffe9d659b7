package respfake

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const hangDeadline = 30 * time.Second

// startReal starts a redis-server of this kind and returns its address and a
// connection that may do everything.
func startReal(t *testing.T, kind string) (addr string, admin *wire) {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the contract needs redis-server, and CI has to run it")
		}
		t.Skip("redis-server is not installed: the fake is not compared with it")
	}
	for range 5 { // another process may take the free port first
		if addr = tryStart(t, binary, kind); addr != "" {
			break
		}
	}
	if addr == "" {
		t.Fatal("redis-server does not start")
	}
	admin = dialReal(t, addr)
	switch kind {
	case "users":
		admin.want(t, "ACL SETUSER bob on >pw ~* +@all -client|kill -info -eval -del", "+OK")
		admin.want(t, "CONFIG SET requirepass sec", "+OK")
	case "cluster":
		admin.want(t, "CLUSTER ADDSLOTSRANGE 0 16383", "+OK")
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(hangDeadline); !strings.Contains(admin.ask(t, "CLUSTER INFO"), "cluster_state:ok"); <-tick.C {
			if time.Now().After(end) {
				t.Fatal("the cluster does not come up")
			}
		}
	}
	return addr, admin
}

// tryStart returns "" when the process ends before it listens.
func tryStart(t *testing.T, binary, kind string) string {
	t.Helper()
	port := freePort(t)
	args := []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir()}
	if kind == "cluster" {
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", freePort(t))
	}
	cmd := exec.Command(binary, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	stuck := time.AfterFunc(hangDeadline, func() { cmd.Process.Kill() })
	defer stuck.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			return "127.0.0.1:" + port
		}
	}
	return ""
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func dialReal(t *testing.T, addr string) *wire {
	t.Helper()
	c, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(hangDeadline))
	return newWire(c)
}
