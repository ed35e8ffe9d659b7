package main

import (
	"context"
	"net/url"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// linked is a node behind a proxy, where the network on the way to it can be harmed
// too.
type linked struct {
	patient
	proxy *redisproc.Proxy
}

// link puts a proxy before each node of a cluster. All lockers, and whoever asks a
// node what has become of it, go through the same.
func link(c *cluster, patients []patient) error {
	for i, nodeURL := range c.urls {
		u, err := url.Parse(nodeURL)
		if err != nil {
			return err
		}
		p, err := redisproc.NewProxy(u.Host)
		if err != nil {
			return err
		}
		c.stop = append(c.stop, func() error { p.Close(); return nil })
		c.urls[i] = "redis://" + p.Addr()
		patients[i] = &linked{patient: patients[i], proxy: p}
	}
	return nil
}

func (l *linked) harm(ctx context.Context, a act) error {
	switch a.kind {
	case faultCut:
		l.proxy.Cut()
	case faultHole:
		l.proxy.Hole(redisproc.Requests)
	case faultMute:
		l.proxy.Hole(redisproc.Replies)
	case faultLag:
		l.proxy.Lag(a.delay)
	default:
		return l.patient.harm(ctx, a)
	}
	return nil
}

func (l *linked) heal(ctx context.Context, fault faultKind) error {
	if fault.onTheWay() {
		l.proxy.Heal()
		return nil
	}
	return l.patient.heal(ctx, fault)
}
