package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
)

const (
	// childGrace is how long a measurement may take besides what it measures.
	childGrace = time.Minute
	// childEnd is how long a child that was told to end may take to release what it
	// holds.
	childEnd = 10 * time.Second
)

// inChild takes a measurement in a process of its own.
func inChild(ctx context.Context, t trial.Task, do trial.Do) (f trial.Figures, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.Span()+childGrace)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, childCommand)
	apart(cmd) // an interrupt at the terminal is passed on, once
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = childEnd
	var complaints complaint
	cmd.Stderr = &complaints
	in, err := cmd.StdinPipe()
	if err != nil {
		return f, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return f, err
	}
	if err := cmd.Start(); err != nil {
		return f, err
	}
	f, err = converse(t, do, in, out)
	in.Close()
	if ended := cmd.Wait(); err != nil {
		err = errors.Join(err, ended, complaints.err())
	}
	return f, err
}

// converse tells a child its task, has done what it asks for, and returns what
// it answers in the end.
func converse(t trial.Task, do trial.Do, in io.Writer, out io.Reader) (trial.Figures, error) {
	say := json.NewEncoder(in)
	if err := say.Encode(t); err != nil {
		return trial.Figures{}, fmt.Errorf("tell a child its task: %w", err)
	}
	lines := bufio.NewReader(out)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return trial.Figures{}, fmt.Errorf("the child ended without a result: %w", err)
		}
		var m message
		switch err := json.Unmarshal(text, &m); {
		case err != nil:
			return trial.Figures{}, fmt.Errorf("a child said %.100q: %w", text, err)
		case m.Error != "":
			return trial.Figures{}, errors.New(m.Error)
		case m.Figures != nil:
			return *m.Figures, nil
		}
		var a answer
		if err := do(m.Act, m.Nodes); err != nil {
			a.Error = err.Error()
		}
		if err := say.Encode(a); err != nil {
			return trial.Figures{}, err
		}
	}
}

// complaint keeps the beginning of what a child complains of.
type complaint struct{ text strings.Builder }

func (b *complaint) Write(p []byte) (int, error) {
	if room := 4096 - b.text.Len(); room > 0 {
		b.text.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (b *complaint) err() error {
	if b.text.Len() == 0 {
		return nil
	}
	return errors.New(strings.TrimSpace(b.text.String()))
}
