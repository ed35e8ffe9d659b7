package storetest

import (
	"time"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

// model is what a store should do with one record, told by rules rather than by
// code that a store could share. Its time is what Elapse has let go by.
type model struct {
	now time.Duration

	there    bool
	print    fingerprint.Print
	state    idempotency.State
	owner    idempotency.Token
	attempt  int64
	taken    idempotency.State // in which state it was taken over; 0 if it was not
	free     time.Duration     // when another may take over
	expires  time.Duration
	response string
}

// owned is whether a call of owner's finds the record in one of states.
func (m *model) owned(owner idempotency.Token, states ...idempotency.State) bool {
	for _, s := range states {
		if m.there && m.owner == owner && m.state == s {
			return true
		}
	}
	return false
}

func (m *model) keep(retention time.Duration) { m.expires = max(m.expires, m.now+retention) }

// elapse lets d go by.
func (m *model) elapse(d time.Duration) {
	m.now += d
	if m.there && m.expires <= m.now {
		m.forget()
	}
}

func (m *model) forget() { *m = model{now: m.now} }

// claim returns the outcome, and the attempt and the state that come with it.
func (m *model) claim(owner idempotency.Token, print fingerprint.Print) (idempotency.Outcome, int64, idempotency.State) {
	again := m.owned(owner, idempotency.StateInProgress)
	switch {
	case !m.there:
		*m = model{now: m.now, there: true, print: print}
	case m.print != print:
		return idempotency.Mismatch, 0, 0
	case m.state == idempotency.StateSuccess:
		return idempotency.Replay, m.attempt, m.state
	case again:
	case m.free > m.now && m.state == idempotency.StateInProgress:
		return idempotency.InProgress, m.attempt, m.state
	case m.free > m.now:
		return idempotency.Undecided, m.attempt, m.state
	default:
		m.taken = m.state
	}
	if !again {
		m.attempt++
	}
	m.state, m.owner, m.free = idempotency.StateInProgress, owner, m.now+lease
	m.keep(retention)
	if m.taken != 0 {
		return idempotency.Takeover, m.attempt, m.taken
	}
	return idempotency.Created, m.attempt, m.state
}

func (m *model) renew(owner idempotency.Token) error {
	if !m.owned(owner, idempotency.StateInProgress) {
		return idempotency.ErrLeaseLost
	}
	m.free = m.now + lease
	m.keep(retention)
	return nil
}

func (m *model) complete(owner idempotency.Token, response string) (idempotency.Completion, error) {
	done := idempotency.Stored
	switch {
	case !m.there:
		*m = model{now: m.now, there: true, print: printX, owner: owner, attempt: 1}
		done = idempotency.Restored
	case m.owned(owner, idempotency.StateSuccess):
		return idempotency.AlreadyStored, nil
	case m.owner != owner:
		return 0, idempotency.ErrLeaseLost
	}
	m.state, m.response = idempotency.StateSuccess, response
	m.keep(retention)
	return done, nil
}

func (m *model) unknown(owner idempotency.Token) error {
	if !m.owned(owner, idempotency.StateInProgress, idempotency.StateUnknown) {
		return idempotency.ErrLeaseLost
	}
	m.state, m.free = idempotency.StateUnknown, m.now+pause
	m.keep(retention)
	return nil
}

func (m *model) abandon(owner idempotency.Token, reconciled bool) error {
	switch {
	case !m.there || m.owned(owner, idempotency.StateUnknown):
		return nil
	case !m.owned(owner, idempotency.StateInProgress):
		return idempotency.ErrLeaseLost
	case m.taken == 0 || reconciled:
		m.forget()
	default:
		m.state, m.free = idempotency.StateUnknown, m.now
	}
	return nil
}

func (m *model) resolve(attempt int64, happened bool) error {
	switch {
	case !m.there || m.state != idempotency.StateUnknown || m.attempt != attempt:
		return idempotency.ErrNotUnknown
	case !happened:
		m.forget()
	default:
		m.state, m.owner, m.response = idempotency.StateSuccess, "", "by hand"
		m.keep(retention)
	}
	return nil
}
