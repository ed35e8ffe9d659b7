package main

import (
	"slices"
	"strings"
	"testing"
)

func TestNodeURLsAreRead(t *testing.T) {
	for text, want := range map[string][]string{
		"redis://h":                            {"redis://h"},
		"redis://a:1,redis://b:2":              {"redis://a:1", "redis://b:2"},
		"redis://a:1, rediss://b:2/3":          {"redis://a:1", "rediss://b:2/3"},
		"redis://a:1,redis://b:2,":             {"redis://a:1", "redis://b:2"},
		"redis://[::1]:7000,unix:///run/r.s":   {"redis://[::1]:7000", "unix:///run/r.s"},
		"redis://u:p@h,redis://:p,q@h2:6380/1": {"redis://u:p@h", "redis://:p,q@h2:6380/1"},
	} {
		set, err := parseNodes(text)
		if err != nil || set.kind != kindRemote || set.count != len(want) || !slices.Equal(set.urls, want) {
			t.Errorf("%q: %+v, %v", text, set, err)
		}
	}
}

func TestPasswordsAreMasked(t *testing.T) {
	for u, want := range map[string]string{
		"redis://h:1":                           "redis://h:1",
		"redis://user:hunter2@h:1/2":            "redis://user:xxxxx@h:1/2",
		"redis://:hunter2@h:1":                  "redis://:xxxxx@h:1",
		"redis://user@h:1":                      "redis://user@h:1",
		"rediss://user:hun%40ter2@[::1]:1/0":    "rediss://user:xxxxx@[::1]:1/0",
		"unix://user:hunter2@/run/r.s?db=1":     "unix://user:xxxxx@/run/r.s",
		"redis://h:1?client_name=hunter2#hunt2": "redis://h:1",
	} {
		if got := masked(u); got != want {
			t.Errorf("%s is shown as %s, want %s", u, got, want)
		}
	}
}

// Whatever is wrong with a URL, what may be its password is not repeated.
func TestErrorsDoNotRepeatPasswords(t *testing.T) {
	for _, value := range []string{
		"redis://user:hunter2@h:port",
		"redis://user:hunter2@h/db",
		"redis://user:hunter2@h?hunter2=1",
		"redis://user:hunter2",
		"redis://user:%hunter2@h",
		"redis://user:hunter2@h,hunter2",
		"redis://h:1/hunter2@h",
		"user:hunter2@h",
		"hunter2",
		"http://user:hunter2@h",
		"unix://user:hunter2@",
		"redis://user:12#hunter2@h",
		"redis://hunter2:12#",
		"redis://user:hunter2@/0",
		"redis://user:hunter2@:6379",
		"redis:///0?client_name=hunter2",
		"redis://h,redis://:12,redis://hunter2",
		"redis:user:hunter2@h",
		"unix://user:12/hunter2@/run/r.s",
		"unix://hunter2/r.s",
		"unix:///run/r.s#hunter2",
		" redis://user:hunter2@h:port",
	} {
		for _, args := range [][]string{{"-nodes", value}, {"-nodes=" + value}, {"-c", "1", value}} {
			_, err := parseRun(args)
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
}
