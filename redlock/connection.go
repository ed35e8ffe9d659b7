package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

const (
	// idlePing is how long a lane lets its connection lie before it asks
	// whether the node is still there.
	idlePing = 5 * time.Second
	// Between two attempts to connect.
	firstPause, laterPause = 50 * time.Millisecond, 100 * time.Millisecond
	// … and to a node that was there, and is no voter.
	barredPause = time.Second
)

// run keeps the lane connected and its flights going, until it is closing and
// has nothing left to do, or ctx is done, which cuts its connection. It returns
// what may be left on the node, if anything. The Locker waits for it.
func (l *lane) run(ctx context.Context) error {
	timer := l.clock.NewTimer(idlePing)
	defer timer.Stop()
	pause := firstPause
	for {
		attempt, hangUp := context.WithCancel(ctx)
		l.mu.Lock()
		l.hangUp = hangUp
		l.mu.Unlock()
		err := l.connection(attempt, timer)
		if err == nil || l.finished() {
			hangUp()
			return l.leftover()
		}
		if l.disconnected(err) {
			pause = firstPause
		}
		if errors.Is(err, errNoVoter) {
			pause = barredPause
		}
		timer.Reset(pause)
		pause = laterPause
		select {
		case <-timer.C():
		case <-attempt.Done():
		}
		hangUp()
		if ctx.Err() != nil {
			return l.leftover()
		}
	}
}

// connection makes one connection and uses it until it ends, which is the
// error, or until there is nothing left to do.
func (l *lane) connection(ctx context.Context, timer clock.Timer) error {
	if l.finished() {
		return nil
	}
	conn, err := l.node.Connect(ctx, l.limit)
	if err != nil {
		return err
	}
	defer conn.Close()
	// A Send ends with its socket, not with ctx.
	defer context.AfterFunc(ctx, func() { conn.Close() })()

	peer := conn.Peer()
	if err := l.admit(peer); err != nil {
		return err
	}
	fate, err := succeed(ctx, conn, l.before)
	if err != nil {
		return err
	}
	l.before = &peer
	now := l.clock.Now()
	l.mu.Lock()
	l.inherit(fate, now)
	l.voter.meet(peer, l.at(now))
	l.far = peer.RoundTrip >= faraway
	l.mu.Unlock()

	for f := &l.flights[0]; l.indebted(); { // what is owed goes out before the lane takes new work
		l.load(conn, f)
		if err := l.fly(ctx, conn, f); err != nil {
			return err
		}
	}
	l.connected()
	return l.serve(ctx, conn, timer)
}

// succeed makes sure that nothing sent on the connection before is carried out
// from now on. A node that was stopped carries out what lies in its sockets
// when it goes on, also on sockets whose other end has closed; an acquire among
// it would outlive its own release.
//
// Only the process that the connection before reached knows it by its number:
// after a restart the numbers start anew, and the same one belongs to a stranger.
func succeed(ctx context.Context, conn Conn, before *Peer) (fate, error) {
	now := conn.Peer()
	switch {
	case before == nil:
		return killed, nil // there was none
	case before.ID == 0 || before.RunID == "" || now.RunID == "":
		return atLarge, nil
	case before.RunID != now.RunID:
		return died, nil
	}
	err := conn.Kill(ctx, before.ID)
	if errors.Is(err, errors.ErrUnsupported) {
		return atLarge, nil
	}
	return killed, err
}

// admit is why the node that has been reached is no voter, or nil.
func (l *lane) admit(p Peer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.voter.admit(p)
	if err == nil && p.RunID != "" {
		if err = l.claim(p.RunID); err != nil {
			l.voter.barred = true
		}
	}
	return err
}

// serve sends flights until the connection ends, or nothing is left to do.
func (l *lane) serve(ctx context.Context, conn Conn, timer clock.Timer) error {
	ctx, end := context.WithCancelCause(ctx)
	var others sync.WaitGroup
	defer others.Wait()
	defer conn.Close()
	defer end(nil)
	// It does not matter which of them carries what, nor which meets the end.
	shuttle := func(f *flight) error {
		for {
			if more, err := l.next(ctx, conn, timer, f); !more {
				return err
			}
			if err := l.fly(ctx, conn, f); err != nil {
				end(err)
				conn.Close() // what the others wait for does not come
				return context.Cause(ctx)
			}
		}
	}
	if l.isFar() {
		for i := range l.flights[1:] {
			others.Go(func() { shuttle(&l.flights[1+i]) })
		}
	}
	return shuttle(&l.flights[0])
}

// next waits until there is something to send, and puts it into f. It reports false
// when nothing is left to do, or when ctx is done, which is the error.
func (l *lane) next(ctx context.Context, conn Conn, timer clock.Timer, f *flight) (bool, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	for {
		if l.mayFly() {
			l.load(conn, f)
		}
		if len(f.calls) > 0 {
			return true, nil
		}
		if l.finished() {
			return false, nil
		}
		rest := l.nextWake()
		timer.Reset(rest)
		select {
		case <-l.wake:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-timer.C():
			if rest < idlePing || l.nextWake() < idlePing {
				continue
			}
			l.mu.Lock()
			f.departed = l.clock.Now() // a PING; it can hang like any flight
			l.mu.Unlock()
			return true, nil
		}
	}
}

// fly sends one flight and takes its answers.
func (l *lane) fly(ctx context.Context, conn Conn, f *flight) error {
	err := conn.Send(ctx, f.load())
	if err != nil {
		err = fmt.Errorf("connection ended: %w", err)
	}
	l.land(f, err)
	return err
}

// connected opens the lane for work.
func (l *lane) connected() {
	l.mu.Lock()
	first := l.state == connecting
	l.state, l.reason = open, nil
	l.mu.Unlock()
	if first {
		l.met(true)
	}
	l.changed(NodeEvent{Node: l.node.String(), Up: true})
}

// disconnected takes the lane out of service, and reports whether it was open.
func (l *lane) disconnected(err error) bool {
	now := l.clock.Now()
	reason := err
	if !errors.Is(err, errNoVoter) {
		reason = fmt.Errorf("not connected: %w", err)
	}
	l.mu.Lock()
	was := l.state
	// That it is no voter, whoever looks at its log wants to know, also if it was
	// away before.
	news := was != down || errors.Is(err, errNoVoter) && !errors.Is(l.reason, errNoVoter)
	l.state, l.reason = down, reason
	stranded := l.strand(now)
	l.mu.Unlock()
	answerUnsent(stranded, reason, now)
	if was == connecting {
		l.met(false)
	}
	if news {
		l.changed(NodeEvent{Node: l.node.String(), Err: err})
	}
	return was == open
}

// close has run return once nothing is queued or owed any more.
func (l *lane) close() {
	l.mu.Lock()
	l.closing = true
	hangUp := l.hangUp
	l.mu.Unlock()
	if hangUp != nil && l.finished() {
		hangUp()
	}
	l.rouse()
}

// finished reports whether the lane is closing and has nothing left to do.
func (l *lane) finished() bool {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	return l.closing && len(l.queue) == l.dead && len(l.debts) == 0 && l.carrying == 0
}

// leftover says what may be left on the node now that run ends.
func (l *lane) leftover() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys int
	var ttl time.Duration
	for _, d := range l.debts {
		keys++
		ttl = max(ttl, d.op.TTL)
	}
	if keys += l.forgotten; keys == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d keys may be left, for at most %v after the node answers again", l.node, keys, max(ttl, l.forgottenTTL))
}
