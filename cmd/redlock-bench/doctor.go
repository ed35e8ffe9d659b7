package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// diagnosis is what the doctor found out. As JSON its field names stay what they
// are; fields may be added.
type diagnosis struct {
	Checked  time.Time       `json:"checked"`
	Software software        `json:"software"`
	Settings doctorReportSet `json:"settings"`
	redlock.Report
}

// doctorReportSet are the flags that nodes were judged by.
type doctorReportSet struct {
	Nodes         string  `json:"nodes"` // embedded, spawn or remote
	MaxTTLMS      float64 `json:"max_ttl_ms"`
	NodeTimeoutMS float64 `json:"node_timeout_ms,omitempty"` // unless it is the lock's own
	Prefix        string  `json:"prefix,omitempty"`
	Fenced        bool    `json:"fenced"`
	Durable       bool    `json:"durable"`
}

// doctor examines nodes and returns the exit status.
func doctor(s doctorSettings, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	return perform(s.json, stdout, stderr, signals, func(ctx context.Context, text io.Writer) (diagnosis, error) {
		d, err := s.examine(ctx)
		if err == nil {
			fmt.Fprint(text, d.text())
		}
		return d, err
	}, health)
}

// health is the exit status of an examination.
func health(d diagnosis, err error, interrupted bool) int {
	switch {
	case errors.Is(err, redlock.ErrInvalid):
		return exitUsage // a flag's value that only the library knows to be wrong
	case err != nil && interrupted:
		return exitInterrupted
	case err != nil || d.worst() == redlock.Problem:
		return exitProblems
	case d.worst() == redlock.Warning:
		return exitWarned
	}
	return exitClean
}

// worst is the severity of the worst finding, which comes first; "" of none.
func (d diagnosis) worst() redlock.Severity {
	if len(d.Findings) == 0 {
		return ""
	}
	return d.Findings[0].Severity
}

// examine asks the nodes, having started them if it is to. An error means that
// there is nothing to tell.
func (s doctorSettings) examine(ctx context.Context) (d diagnosis, err error) {
	c, err := s.nodes.up(ctx)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, c.down()) }()
	l, err := redlock.Dial(c.urls, s.config())
	if err != nil {
		return d, err
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer cancel()
		err = errors.Join(err, l.Close(after))
	}()
	r, err := l.Audit(ctx)
	if err != nil {
		return d, err
	}
	return diagnosis{Checked: time.Now(), Software: thisSoftware(), Settings: s.reported(), Report: *r}, nil
}

// config is that of a Locker that would be used as the flags say.
func (s doctorSettings) config() redlock.Config {
	return redlock.Config{
		TTL: s.maxTTL, MaxTTL: s.maxTTL, NodeTimeout: s.nodeTimeout, KeyPrefix: s.prefix,
		Fenced: s.fenced, DurableNodes: s.durable,
	}
}

func (s doctorSettings) reported() doctorReportSet {
	return doctorReportSet{
		Nodes: s.nodes.kind, MaxTTLMS: millis(s.maxTTL), NodeTimeoutMS: millis(s.nodeTimeout),
		Prefix: s.prefix, Fenced: s.fenced, Durable: s.durable,
	}
}
