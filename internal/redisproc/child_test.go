//go:build unix

package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// script makes Start run a shell script in a server's stead.
func script(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_SERVER", path)
}

func TestStartTriesAnotherPortWhenOneIsTaken(t *testing.T) {
	Require(t)
	real, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(t.TempDir(), "first")
	script(t, fmt.Sprintf(`
		if [ ! -e %[1]q ]; then echo "$2" >%[1]q; echo "bind: Address already in use"; exit 1; fi
		exec %[2]q "$@"`, first, real))
	s := start(t, Options{})
	taken, err := os.ReadFile(first)
	if err != nil {
		t.Fatal("the first try did not fail")
	}
	if port := strings.TrimSpace(string(taken)); strings.HasSuffix(s.Addr(), ":"+port) {
		t.Errorf("it runs on %s, the port that was taken", s.Addr())
	}
}

func TestServerThatEndsAtOnceIsReportedInItsWords(t *testing.T) {
	script(t, "echo no such option; exit 3")
	dir := t.TempDir()
	_, err := Start(patience(t), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "no such option") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v", err)
	}
	leftNothingIn(t, dir)
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	script(t, "exec sleep 600")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	_, err := Start(ctx, Options{Dir: dir})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	leftNothingIn(t, dir)
}

func TestFind(t *testing.T) {
	bin := t.TempDir()
	put := func(name string) string {
		path := filepath.Join(bin, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("PATH", bin)
	t.Setenv("REDIS_SERVER", "")
	if path, err := Find(); err == nil {
		t.Errorf("found %q where there is none", path)
	}
	for _, name := range []string{"valkey-server", "redis-server"} { // the later wins
		want := put(name)
		if path, err := Find(); err != nil || path != want {
			t.Errorf("found %q (%v), want %q", path, err, want)
		}
	}
	own := put("own-server")
	t.Setenv("REDIS_SERVER", own)
	if path, err := Find(); err != nil || path != own {
		t.Errorf("found %q (%v), want %q", path, err, own)
	}
	t.Setenv("REDIS_SERVER", filepath.Join(bin, "none"))
	if path, err := Find(); err == nil {
		t.Errorf("found %q though REDIS_SERVER names nothing", path)
	}
}

// fakeTB remembers how a test was ended.
type fakeTB struct{ ended string }

func (f *fakeTB) Helper()               {}
func (f *fakeTB) Skipf(string, ...any)  { f.ended = "skipped" }
func (f *fakeTB) Fatalf(string, ...any) { f.ended = "failed" }

func TestRequire(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "redis-server"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, server, ci, want string }{
		{bin, "", "", ""},
		{bin, "", "true", ""},
		{t.TempDir(), "", "", "skipped"},
		{t.TempDir(), "", "false", "skipped"},
		{t.TempDir(), "", "true", "failed"},
		{bin, "/no/such/server", "", "failed"},
		{t.TempDir(), filepath.Join(bin, "redis-server"), "true", ""},
	} {
		t.Setenv("PATH", test.path)
		t.Setenv("REDIS_SERVER", test.server)
		t.Setenv("CI", test.ci)
		var tb fakeTB
		if Require(&tb); tb.ended != test.want {
			t.Errorf("%+v: %q", test, tb.ended)
		}
	}
}
