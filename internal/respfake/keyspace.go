package respfake

import (
	"slices"
	"time"
)

// A keyspace is one database. Expired keys are dropped when they are looked at.
type keyspace map[string]*entry

type entry struct {
	text  string
	list  []string // not nil: a list
	until int64    // unix ms of expiry; 0: never
}

// Tx is one database at one instant, as a script sees it. It is valid only within
// the function it was given to.
type Tx struct {
	keys keyspace
	now  time.Time
}

// SetOptions are the options of SET. TTL counts in whole milliseconds; zero means
// none.
type SetOptions struct {
	NX, XX, KeepTTL bool
	TTL             time.Duration
}

// find returns the entry of a live key, or nil. A key lives until the clock is past
// its expiry: at the very millisecond it is still there.
func (tx *Tx) find(key string) *entry {
	e := tx.keys[key]
	if e != nil && e.until != 0 && tx.now.UnixMilli() > e.until {
		delete(tx.keys, key)
		return nil
	}
	return e
}

// Get returns a string, whether the key exists, or ErrWrongType.
func (tx *Tx) Get(key string) (text string, found bool, err error) {
	e := tx.find(key)
	switch {
	case e == nil:
		return "", false, nil
	case e.list != nil:
		return "", false, ErrWrongType
	}
	return e.text, true, nil
}

// MGet returns a string for every key, or nil where there is none, which
// includes keys of another type.
func (tx *Tx) MGet(keys ...string) []any {
	out := make([]any, len(keys))
	for i, key := range keys {
		if text, found, _ := tx.Get(key); found {
			out[i] = text
		}
	}
	return out
}

// Set writes a string, over a key of any type, and says whether it did: NX and XX
// may forbid it.
func (tx *Tx) Set(key, text string, how SetOptions) bool {
	old := tx.find(key)
	if how.NX && old != nil || how.XX && old == nil {
		return false
	}
	e := &entry{text: text}
	if how.KeepTTL && old != nil {
		e.until = old.until
	}
	if ms := how.TTL.Milliseconds(); ms > 0 {
		e.until = tx.now.UnixMilli() + ms
	}
	tx.keys[key] = e
	return true
}

// Push puts items at the head of a list, one after the other, and returns its new
// length, or ErrWrongType.
func (tx *Tx) Push(key string, items ...string) (int, error) {
	e := tx.find(key)
	if e == nil {
		e = &entry{list: []string{}}
		tx.keys[key] = e
	}
	if e.list == nil {
		return 0, ErrWrongType
	}
	for _, item := range items {
		e.list = slices.Insert(e.list, 0, item)
	}
	return len(e.list), nil
}

// Del deletes keys and returns how many there were.
func (tx *Tx) Del(keys ...string) int {
	n := 0
	for _, key := range keys {
		if tx.find(key) != nil {
			delete(tx.keys, key)
			n++
		}
	}
	return n
}

// PTTL is how many milliseconds a key has left; -1 when it has no expiry, -2 when
// there is no such key.
func (tx *Tx) PTTL(key string) int64 {
	e := tx.find(key)
	switch {
	case e == nil:
		return -2
	case e.until == 0:
		return -1
	}
	return e.until - tx.now.UnixMilli()
}

// PExpire sets what a key has left, and says whether there was one. Zero or less
// deletes it.
func (tx *Tx) PExpire(key string, ms int64) bool {
	e := tx.find(key)
	if e == nil {
		return false
	}
	e.until = tx.now.UnixMilli() + ms
	if ms <= 0 {
		delete(tx.keys, key)
	}
	return true
}

// Type is "string", "list" or "none".
func (tx *Tx) Type(key string) string {
	e := tx.find(key)
	switch {
	case e == nil:
		return "none"
	case e.list != nil:
		return "list"
	}
	return "string"
}

// Keys returns the names of all keys, sorted.
func (tx *Tx) Keys() []string {
	var names []string
	for name := range tx.keys {
		if tx.find(name) != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Do gives a test the keys of a database, to look at or to prepare. Nothing else
// runs meanwhile; it works while the server hangs, and leaves no trace in the log.
func (s *Server) Do(db int, f func(tx *Tx)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.tx(db, time.Now()))
}

func (s *Server) tx(db int, now time.Time) *Tx { return &Tx{s.dbs[db], now} }

func (s *Server) flush() {
	for i := range s.dbs {
		s.dbs[i] = make(keyspace)
	}
}
