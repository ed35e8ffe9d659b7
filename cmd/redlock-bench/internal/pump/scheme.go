package pump

import (
	"bytes"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Scheme is a way to acquire and release.
type Scheme struct {
	Name    string
	Title   string
	scripts []string
	acquire func(keys []string, token string) step
	release func(keys []string, token string) step
}

//go:embed release.lua
var releaseOne string

//go:embed releaseall.lua
var releaseAll string

// ttl is how long a key stays if the pump is killed, in milliseconds.
const ttl = "10000"

// Schemes are all there are.
var Schemes = []Scheme{
	{
		Name: "plain", Title: "a SET and an EVALSHA for each key",
		scripts: []string{releaseOne}, acquire: sets, release: releases,
	},
	{
		Name: "batched", Title: "a SET for each key, one EVALSHA for all releases of a flight",
		scripts: []string{releaseAll}, acquire: sets, release: oneRelease,
	},
}

// Named is the scheme with a name.
func Named(name string) (Scheme, error) {
	i := slices.IndexFunc(Schemes, func(s Scheme) bool { return s.Name == name })
	if i < 0 {
		return Scheme{}, fmt.Errorf("no scheme of the pump is called %q", name)
	}
	return Schemes[i], nil
}

// steps are what one thread sends for its keys.
func (s Scheme) steps(prefix string, thread, flight int) []step {
	keys := make([]string, flight)
	for i := range keys {
		keys[i] = fmt.Sprintf("%spump:%d:%d", prefix, thread, i)
	}
	token := fmt.Sprintf("%022d", thread) // as long as a lock's
	return []step{s.acquire(keys, token), s.release(keys, token)}
}

func sets(keys []string, token string) (s step) {
	for _, k := range keys {
		s.request = append(s.request, command("SET", k, token, "NX", "PX", ttl)...)
	}
	s.answer = bytes.Repeat([]byte("+OK\r\n"), len(keys))
	return s
}

func releases(keys []string, token string) (s step) {
	for _, k := range keys {
		s.request = append(s.request, command("EVALSHA", digest(releaseOne), "1", k, token)...)
	}
	s.answer = bytes.Repeat([]byte(":1\r\n"), len(keys))
	return s
}

func oneRelease(keys []string, token string) step {
	args := append([]string{"EVALSHA", digest(releaseAll), strconv.Itoa(len(keys))}, keys...)
	return step{
		request: command(append(args, slices.Repeat([]string{token}, len(keys))...)...),
		answer:  fmt.Appendf(nil, ":%d\r\n", len(keys)),
	}
}

// command is one as it goes over the wire.
func command(args ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return []byte(b.String())
}

// digest is what EVALSHA calls a script.
func digest(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}
