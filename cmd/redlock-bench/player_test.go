package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/redlock"
)

// unharmed is a node to which nothing can be done.
type unharmed struct{ err error }

func (u unharmed) harm(context.Context, act) error       { return u.err }
func (u unharmed) heal(context.Context, faultKind) error { return u.err }

func TestFaultThatDidNotHappenFailsTheDrill(t *testing.T) {
	for _, test := range []struct {
		fault string
		err   error
		want  string
	}{
		{"kill:n1@1ms", nil, "n1: it still answers"},
		{"restart:n1@1ms", nil, "n1: it is still the same process"},
		{"lag:n1=1m@1ms", nil, "n1: it is not late: PING took "},
		{"stop:n1@1ms", errors.New("no such process"), "n1: no such process"},
	} {
		d, text := testDrill(t, "-nodes", "spawn:1", "-durable", "-d", "1h", "-fault", test.fault)
		d.up = func(ctx context.Context, s drillSettings) (*cluster, []patient, error) {
			c, err := nodeSet{kind: kindEmbedded, count: 1}.up(ctx)
			return c, []patient{unharmed{test.err}}, err
		}
		sound := &fakeLocker{} // with which nothing else is wrong
		d.makeLocker = func(*cluster, redlock.Config) (locker, error) { return sound, nil }
		r, err := d.run(until(t, &d, text, "DID NOT HAPPEN"))
		if err != nil {
			t.Fatal(err)
		}
		if r.Check.Clean || r.Check.Overlaps != 0 || status(r.Check, nil, false) != exitFailed || len(r.Faults) == 0 || !strings.Contains(r.Faults[0].Error, test.want) {
			t.Errorf("%s: %+v", test.fault, r.Faults)
		}
		if !strings.Contains(text.String(), "DID NOT HAPPEN: "+test.want) || !strings.Contains(text.String(), "verdict: FAILED") {
			t.Errorf("%s:\n%s", test.fault, text)
		}
	}
}

func TestDrillAsJSONParses(t *testing.T) {
	d, text := testDrill(t, "-nodes", "spawn:1", "-durable", "-d", "1h", "-fault", "lag:n1=1m@1ms")
	d.up = func(ctx context.Context, s drillSettings) (*cluster, []patient, error) {
		c, err := nodeSet{kind: kindEmbedded, count: 1}.up(ctx)
		return c, []patient{unharmed{}}, err
	}
	r, err := d.run(until(t, &d, text, "DID NOT HAPPEN"))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := writeJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var back drillReport
	dec := json.NewDecoder(&b)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&back); err != nil {
		t.Fatal(err)
	}
	if back.Outcome.Grants != r.Outcome.Grants || len(back.Faults) != len(r.Faults) || back.Settings != r.Settings {
		t.Errorf("read back %+v, want %+v", back, r)
	}
}
