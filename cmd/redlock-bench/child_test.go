package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
)

func TestConversationWithAChild(t *testing.T) {
	task := trial.Task{Mode: trial.Fault, Rival: "redsync", URLs: []string{"redis://h"}}
	out := `{"act":"stop","nodes":[0,1]}` + "\n" + `{"act":"continue","nodes":[0,1]}` + "\n" + `{"figures":{"cycles":7}}` + "\n"
	var in bytes.Buffer
	var done []string
	f, err := converse(task, func(act string, nodes []int) error {
		done = append(done, act)
		if !reflect.DeepEqual(nodes, []int{0, 1}) {
			t.Errorf("%s of %v", act, nodes)
		}
		if act == trial.Continue {
			return errors.New("it does not wake")
		}
		return nil
	}, &in, strings.NewReader(out))
	if err != nil || f.Cycles != 7 || !reflect.DeepEqual(done, []string{"stop", "continue"}) {
		t.Errorf("%+v, %v, %v", f, err, done)
	}
	said := json.NewDecoder(&in)
	var told trial.Task
	if err := said.Decode(&told); err != nil || !reflect.DeepEqual(told, task) {
		t.Errorf("%+v, %v", told, err)
	}
	for _, want := range []string{"", "it does not wake"} {
		var a answer
		if err := said.Decode(&a); err != nil || a.Error != want {
			t.Errorf("%+v, %v, want %q", a, err, want)
		}
	}
}

func TestChildThatFailsIsAnError(t *testing.T) {
	for out, want := range map[string]string{
		"":                             "the child ended without a result",
		"panic: x\n":                   `a child said "panic: x\n"`,
		`{"error":"no quorum"}` + "\n": "no quorum",
		`{"act":"stop"`:                "the child ended without a result",
	} {
		if _, err := converse(trial.Task{}, nil, io.Discard, strings.NewReader(out)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", out, err)
		}
	}
}

// lastMessage is what a child says in the end.
func lastMessage(t *testing.T, out string) (m message) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &m); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	return m
}

func TestChildSaysWhatIsWrongWithItsTask(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "no task: EOF",
		"hello\n":                               "no task: invalid character",
		`{"mode":"fault","rival":"none"}`:       "no task: EOF", // broken off
		`{"rival":"none"}` + "\n":               `no implementation is called "none"`,
		`{"mode":"limit"}` + "\n":               `no scheme of the pump is called ""`,
		`{"mode":"x","rival":"redsync"}` + "\n": `no mode is called "x"`,
	} {
		var out bytes.Buffer
		if status := runChild(t.Context(), strings.NewReader(in), &out); status != exitFailed || !strings.Contains(lastMessage(t, out.String()).Error, want) {
			t.Errorf("%q: exit status %d, %q", in, status, out.String())
		}
	}
}

// A parent that was killed closes the pipe, and nobody else ends its children.
func TestChildEndsWithItsParent(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	nodes, err := nodeSet{kind: kindEmbedded, count: 1}.up(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.down()
	task, err := json.Marshal(trial.Task{Mode: trial.Uncontended, Rival: "quorumlock", URLs: nodes.urls, Fresh: true, Workers: 2, Length: 2 * hang})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	status := runChild(ctx, bytes.NewReader(append(task, '\n')), &out)
	if ctx.Err() != nil || status != exitFailed {
		t.Errorf("exit status %d, %v, %s", status, ctx.Err(), out.String())
	}
}
