package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
)

// childCommand is how this program calls itself for one measurement. It is no
// command for people.
const childCommand = "measure"

// message is a line from a child: something is to be done to nodes, or the
// measurement is over.
type message struct {
	Act     string         `json:"act,omitempty"`
	Nodes   []int          `json:"nodes,omitempty"`
	Figures *trial.Figures `json:"figures,omitempty"`
	Error   string         `json:"error,omitempty"`
}

// answer is a line to a child, after it has been told its task: what it asked for
// has been done.
type answer struct {
	Error string `json:"error,omitempty"`
}

// errNoParent is why a child ends that nobody listens to any more.
var errNoParent = errors.New("the program that started this measurement has gone")

// runChild takes one measurement: its task is the first line of in.
func runChild(ctx context.Context, in io.Reader, out io.Writer) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lines := bufio.NewReader(in)
	said := json.NewEncoder(out)
	var task trial.Task
	text, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &task)
	}
	if err != nil {
		said.Encode(message{Error: "no task: " + err.Error()})
		return exitFailed
	}
	answers := make(chan answer)
	go func() { // ends with the program: reading cannot be interrupted
		for {
			text, err := lines.ReadBytes('\n')
			if err != nil {
				cancel(errNoParent)
				return
			}
			var a answer
			if err := json.Unmarshal(text, &a); err != nil {
				a.Error = err.Error()
			}
			answers <- a
		}
	}()
	f, err := trial.Run(ctx, task, func(act string, nodes []int) error {
		if err := said.Encode(message{Act: act, Nodes: nodes}); err != nil {
			return err
		}
		select {
		case a := <-answers:
			if a.Error != "" {
				return errors.New(a.Error)
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	m := message{Figures: &f}
	if err != nil {
		m = message{Error: err.Error()}
	}
	if said.Encode(m) != nil || err != nil {
		return exitFailed
	}
	return exitClean
}
