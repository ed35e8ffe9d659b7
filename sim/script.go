package sim

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A script is a plan in words: a line for each setting, each fault, and each step
// that a client takes. Without steps the clients do what the seed says. How to write
// one is in docs/simulation.md.

// String is the plan as a script, which Parse reads.
func (p Plan) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("seed %d", p.Seed)
	line("nodes %d", p.Nodes)
	line("clients %d", p.Clients)
	line("keys %d", p.Keys)
	for _, flag := range p.flags() {
		if *flag.is {
			line("%s", flag.name)
		}
	}
	for _, d := range p.durations() {
		if *d.is != 0 {
			line("%s %v", d.name, *d.is)
		}
	}
	line("acts %d", p.Acts)
	for _, s := range p.shares() {
		if *s.is != 0 {
			line("%s %v", s.name, *s.is)
		}
	}
	for _, f := range p.Faults {
		line("%v", f)
	}
	for _, s := range p.Script {
		line("at %v c%d %s %s %v", s.At, s.Client+1, s.Verb, s.Key, s.For)
	}
	return b.String()
}

type setting[T any] struct {
	name string
	is   *T
}

func (p *Plan) flags() []setting[bool] {
	return []setting[bool]{{"timely", &p.Timely}, {"keeping", &p.Keeping}, {"fenced", &p.Fenced}, {"durable", &p.Durable}, {"apart", &p.Apart}, {"terse", &p.Terse}}
}

func (p *Plan) durations() []setting[time.Duration] {
	return []setting[time.Duration]{
		{"ttl", &p.TTL}, {"maxttl", &p.MaxTTL}, {"maxhold", &p.MaxHold}, {"timeout", &p.Timeout}, {"skew", &p.Skew},
		{"think", &p.Think}, {"length", &p.Length}, {"delay", &p.Weather.Delay}, {"slowest", &p.Weather.Slowest},
	}
}

func (p *Plan) shares() []setting[float64] {
	return []setting[float64]{
		{"long", &p.Long}, {"slow", &p.Weather.Slow}, {"lost", &p.Weather.Lost}, {"mute", &p.Weather.Mute}, {"twice", &p.Weather.Twice},
	}
}

func (p *Plan) numbers() []setting[int] {
	return []setting[int]{{"nodes", &p.Nodes}, {"clients", &p.Clients}, {"keys", &p.Keys}, {"acts", &p.Acts}}
}

// Parse reads a script. What it does not set is as for three nodes and two clients
// on which all assumptions hold.
func Parse(text string) (Plan, error) {
	p := Plan{
		Nodes: 3, Clients: 2, Keys: 1, TTL: time.Second, MaxTTL: time.Second, Length: time.Hour,
		Weather: Weather{Delay: time.Millisecond},
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if words := strings.Fields(line); len(words) > 0 {
			if err := p.read(words); err != nil {
				return p, fmt.Errorf("%q: %w", strings.TrimSpace(line), err)
			}
		}
	}
	return p, nil
}

// read takes one line into the plan.
func (p *Plan) read(words []string) (err error) {
	name, rest := words[0], words[1:]
	if name == "at" {
		return p.readEvent(rest)
	}
	for _, f := range p.flags() {
		if f.name == name && len(rest) == 0 {
			*f.is = true
			return nil
		}
	}
	if len(rest) != 1 {
		return errors.New("want one value")
	}
	if name == "seed" {
		p.Seed, err = strconv.ParseUint(rest[0], 10, 64)
		return err
	}
	for _, n := range p.numbers() {
		if n.name == name {
			if *n.is, err = strconv.Atoi(rest[0]); err == nil && *n.is < 1 {
				return errors.New("want 1 or more")
			}
			return err
		}
	}
	for _, d := range p.durations() {
		if d.name == name {
			*d.is, err = time.ParseDuration(rest[0])
			return err
		}
	}
	for _, s := range p.shares() {
		if s.name == name {
			*s.is, err = strconv.ParseFloat(rest[0], 64)
			return err
		}
	}
	return errors.New("no such setting")
}

// readEvent reads a fault, "12ms for 300ms stop n2", or a step, "12ms c1 try k".
func (p *Plan) readEvent(words []string) (err error) {
	f := Fault{Node: -1, Client: -1}
	if f.At, err = time.ParseDuration(words[0]); err != nil {
		return err
	}
	words = words[1:]
	if len(words) > 1 && words[0] == "for" {
		if f.For, err = time.ParseDuration(words[1]); err != nil {
			return err
		}
		words = words[2:]
	}
	if len(words) == 0 {
		return errors.New("want a fault or a step")
	}
	if _, ok := kinds[words[0]]; !ok {
		return p.readStep(f.At, words)
	}
	f.Kind = words[0]
	for words = words[1:]; len(words) > 0; words = words[1:] {
		switch word := words[0]; {
		case word == "c*", word == "n*":
		case word == "by" && len(words) > 1:
			f.Size, err = time.ParseDuration(words[1])
			words = words[1:]
		case word == "rate" && len(words) > 1:
			f.Rate, err = strconv.ParseFloat(words[1], 64)
			words = words[1:]
		case word[0] == 'c':
			f.Client, err = numbered(word, p.Clients)
		case word[0] == 'n':
			f.Node, err = numbered(word, p.Nodes)
		default:
			err = fmt.Errorf("what is %q?", word)
		}
		if err != nil {
			return err
		}
	}
	if err := kinds[f.Kind].target.check(f); err != nil {
		return fmt.Errorf("%s %w", f.Kind, err)
	}
	p.Faults = append(p.Faults, f)
	return nil
}

func (p *Plan) readStep(at time.Duration, words []string) (err error) {
	if len(words) < 3 || verbs[words[1]] == nil {
		return errors.New("want a fault, or a client, what it does, and a key")
	}
	s := Step{At: at, Verb: words[1], Key: words[2]}
	if s.Client, err = numbered(words[0], p.Clients); err != nil {
		return err
	}
	if s.For = 10 * time.Second; len(words) > 3 {
		if s.For, err = time.ParseDuration(words[3]); err != nil {
			return err
		}
	}
	p.Script = append(p.Script, s)
	return nil
}

// numbered is the number of c2 or n2, counted from 0.
func numbered(word string, of int) (int, error) {
	i, err := strconv.Atoi(word[1:])
	if err != nil || i < 1 || i > of {
		return 0, fmt.Errorf("%q is none of %d", word, of)
	}
	return i - 1, nil
}
