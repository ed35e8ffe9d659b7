package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// silence is how long a node must not answer to be called silent. One that is
	// merely late would answer sooner, however busy the machine.
	silence = 300 * time.Millisecond
	// wakePatience is how long a healed node may take to answer.
	wakePatience = 10 * time.Second
)

// witness sees whether what was done to nodes has happened. It asks them by the
// way that the lock goes, on connections of its own.
type witness struct {
	urls   []string
	marker string // a key to put where everything is to be forgotten
}

// sight is what was seen of a node before something happened to it.
type sight struct {
	run    string // the process, "" if it did not run
	marked bool
}

// before looks at a node that something is about to happen to.
func (w witness) before(ctx context.Context, n int, kind, fault faultKind) (s sight, err error) {
	if !kind.restarts() || fault == faultKill {
		return s, nil
	}
	if s.run, err = w.run(ctx, n); err != nil || kind != faultWipe {
		return s, err
	}
	client, err := plainClient(w.urls[n])
	if err != nil {
		return s, err
	}
	defer client.Close()
	s.marked = true
	return s, client.Set(ctx, w.marker, "to be forgotten", time.Minute).Err()
}

// after says in words what shows that an act has happened to a node. The error
// says that it has not.
func (w witness) after(ctx context.Context, n int, a act, was sight) (string, error) {
	switch {
	case a.kind == faultHeal:
		return "PING is answered", w.awake(ctx, n)
	case a.kind == faultLag:
		took, err := w.ping(ctx, n)
		if err == nil && took < a.delay {
			err = fmt.Errorf("it is not late: PING took %v", took)
		}
		return fmt.Sprintf("PING takes %v", took.Round(time.Millisecond)), err
	case a.kind.lasts():
		ctx, cancel := context.WithTimeout(ctx, silence)
		defer cancel()
		if _, err := w.ping(ctx, n); err == nil {
			return "", errors.New("it still answers")
		}
		return "PING is not answered", nil
	}
	if err := w.awake(ctx, n); err != nil {
		return "", err
	}
	run, err := w.run(ctx, n)
	if err == nil && run == was.run {
		err = errors.New("it is still the same process")
	}
	if err != nil || !was.marked {
		return "another run_id", err
	}
	client, err := plainClient(w.urls[n])
	if err != nil {
		return "", err
	}
	defer client.Close()
	kept, err := client.Exists(ctx, w.marker).Result()
	if kept != 0 {
		err = errors.New("it has kept a key")
	}
	return "another run_id, and a key put there before is gone", err
}

// awake waits until a node answers.
func (w witness) awake(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, wakePatience)
	defer cancel()
	for {
		_, err := w.ping(ctx, n)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ping is how long PING takes on a connection that is there.
func (w witness) ping(ctx context.Context, n int) (time.Duration, error) {
	client, err := plainClient(w.urls[n])
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil { // with which the connection begins
		return 0, err
	}
	began := time.Now()
	err = client.Ping(ctx).Err()
	return time.Since(began), err
}

// run is the process that a node is.
func (w witness) run(ctx context.Context, n int) (string, error) {
	client, err := plainClient(w.urls[n])
	if err != nil {
		return "", err
	}
	defer client.Close()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return id, nil
		}
	}
	return "", errors.New("it does not say which process it is")
}
