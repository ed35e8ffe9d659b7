// Package rival is the locks that are compared, ours among them, each as its
// own users would have it: its defaults, connections of its own, and nothing
// around it that it has not.
package rival

import (
	"context"
	"runtime/debug"
	"time"
)

// A Lock is an implementation.
type Lock struct {
	Name   string // for flags and JSON
	Title  string // for people
	Module string // whose version counts
	Single bool   // it uses one node, the first
	Renews bool   // its leases are Kept, and its Trace says when
	Setup  string // what differs from its defaults, and which matter

	Does    []string // what it promises
	DoesNot []string // what it does not, though another here does

	open func(Site) (Locker, error)
}

// A Site is where locks are to be.
type Site struct {
	URLs   []string      // of the nodes
	Prefix string        // of all keys
	Lead   time.Duration // how far a node's timers may run ahead
	TTL    time.Duration // 0: the implementation's own
	Fresh  bool          // the nodes may have just been started, and do not restart: the operator's word
	Trace  Trace
}

// A Trace is told what an implementation would otherwise keep to itself. Its
// funcs may be nil, and are called from many goroutines.
type Trace struct {
	Renewed func(key string, err error) // a renewal has ended; the key is without the site's prefix
	Lost    func()                      // a lease has ended other than by a release
}

// A Locker is an implementation at work. Acquire waits until it has the lock or
// ctx ends, though some look at ctx seldom.
type Locker interface {
	Acquire(ctx context.Context, key string) (Lease, error)
	Close(ctx context.Context) error
}

// A Lease is a lock that is held.
type Lease interface {
	Release(ctx context.Context) error
}

// Kept is a lease that can be renewed until it is released.
type Kept interface {
	Lease
	KeepAlive()
}

// Open connects an implementation to the nodes of a site.
func (l Lock) Open(s Site) (Locker, error) {
	if l.Single {
		s.URLs = s.URLs[:1]
	}
	return l.open(s)
}

// Version is that of the module this program was built with.
func (l Lock) Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path != l.Module {
			continue
		}
		if m.Replace != nil && m.Replace.Version == "" {
			return m.Version + " (working copy)"
		}
		return m.Version
	}
	return "unknown"
}

// All are the implementations there are, ours first.
var All = []Lock{quorumLock, fencedLock, redsyncLock, redislockLock, rueidisLock}

// Named is the implementation with a name.
func Named(name string) (Lock, bool) {
	for _, l := range All {
		if l.Name == name {
			return l, true
		}
	}
	return Lock{}, false
}
