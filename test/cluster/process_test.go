package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/test/cluster/client"
)

// process is some clients that share a process, and their links to the nodes.
type process struct {
	client.Settings
	t        *testing.T
	cmd      *exec.Cmd
	out, err bytes.Buffer
	ended    chan struct{}
	links    []*redisproc.Proxy // in the order of the nodes
	killed   bool
}

// begin starts a process that has its own link to each address.
func begin(t *testing.T, s client.Settings, servers []string) *process {
	t.Helper()
	p := &process{t: t, ended: make(chan struct{})}
	for _, addr := range servers {
		link, err := redisproc.NewProxy(addr)
		if err != nil {
			t.Fatal(err)
		}
		p.links = append(p.links, link)
		s.Nodes = append(s.Nodes, link.Addr())
	}
	p.Settings = s
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), client.Variable+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	// It ends with this process, however this one ends; the signal is sent when the
	// thread that has started it ends, which therefore is kept.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill() })
	return p
}

// kill ends it as kill -9 does. A dead one stays dead.
func (p *process) kill() {
	p.killed = true
	p.cmd.Process.Kill()
	<-p.ended
	for _, l := range p.links {
		l.Close()
	}
}

// stop halts it, and returns when it has come to a halt.
func (p *process) stop() {
	p.t.Helper()
	p.cmd.Process.Signal(syscall.SIGSTOP)
	eventually(p.t, "the client has halted", func() bool { return p.halted() })
}

func (p *process) cont() { p.cmd.Process.Signal(syscall.SIGCONT) }

// halted says whether all of its threads have.
func (p *process) halted() bool {
	dir := fmt.Sprintf("/proc/%d/task/", p.cmd.Process.Pid)
	threads, err := os.ReadDir(dir)
	for _, thread := range threads {
		text, err := os.ReadFile(dir + thread.Name() + "/stat")
		_, state, _ := strings.Cut(string(text), ") ")
		if err == nil && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return err == nil
}

// end has it come to its end, and returns what it says then.
func (p *process) end() (sum client.Summary) {
	p.t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(hang):
		p.t.Fatalf("clients from %d on do not end", p.First)
	}
	if err := json.Unmarshal(p.out.Bytes(), &sum); err != nil {
		p.t.Fatalf("clients from %d on ended with %v and said %q: %s", p.First, p.cmd.ProcessState, p.out.String(), p.err.String())
	}
	return sum
}
